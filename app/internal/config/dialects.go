package config

import (
	"fmt"
	"strings"
	"time"
)

// ignored is a member that is known and means nothing here.
var ignored key

// The dialects. A file has the dialect of its client, whatever it looks like.
var (
	claudeDesktopDialect = &dialect{client: ClientClaudeDesktop, unit: time.Millisecond}
	claudeCodeDialect    = &dialect{
		client: ClientClaudeCode, syntax: plainSyntax, unit: time.Millisecond,
		keys: map[string]key{
			"headersHelper": readHelper, "alwaysLoad": ignored, "oauth": readOAuth,
		},
	}
	vscodeDialect = &dialect{
		client: ClientVSCode, syntax: editorSyntax, unit: time.Millisecond,
		keys: map[string]key{
			"envFile": readEnvFileName, "dev": ignored, "gallery": ignored, "sandbox": ignored,
			"sandboxEnabled": noteKey("sandboxEnabled has no effect here: the process has the rights of the person"),
		},
	}
	copilotDialect = &dialect{
		client: ClientCopilot, syntax: plainSyntax, unit: time.Millisecond,
		keys: map[string]key{"tools": readCopilotTools},
	}
	cursorDialect = &dialect{
		client: ClientCursor, syntax: editorSyntax, unit: time.Millisecond,
		keys: map[string]key{"envFile": readEnvFileName, "auth": readOAuth},
	}
	gooseDialect = &dialect{
		client: ClientGoose, syntax: gooseSyntax, unit: time.Second, remoteOnly: true, begin: gooseVariables,
		keys: map[string]key{
			"env_keys": readEnvKeys, "available_tools": toolsKey(allowTools), "bundled": ignored,
			"display_name": ignored, "instructions": ignored, "tools": ignored, "code": ignored, "dependencies": ignored,
		},
	}
	opencodeDialect = &dialect{
		client: ClientOpenCode, syntax: opencodeSyntax, unit: time.Millisecond, connect: true,
	}
	crushDialect = &dialect{
		client: ClientCrush, syntax: crushSyntax, unit: time.Second, connect: true,
		keys: map[string]key{
			"enabled_tools": toolsKey(allowTools), "disabled_tools": toolsKey(denyTools),
			"oauth_client_id":     oauthText(func(o *OAuth) *string { return &o.ClientID }),
			"oauth_client_secret": oauthText(func(o *OAuth) *string { return &o.ClientSecret }),
			"oauth_scopes":        readScopes,
			"oauth_callback_port": readCallbackPort,
		},
	}
	kitDialect = &dialect{
		client: ClientKit, syntax: kitSyntax, unit: time.Millisecond,
		keys: map[string]key{
			"allowedTools": toolsKey(allowTools), "excludedTools": toolsKey(denyTools),
			"tasksMode": ignored, "options": ignored, "noOAuth": readNoOAuth,
		},
	}
	librechatDialect = &dialect{
		client: ClientLibreChat, syntax: librechatSyntax, unit: time.Millisecond, begin: librechatInputs,
		keys: map[string]key{
			"initTimeout": durationKey(connectTimeout), "sseReadTimeout": ignored, "serverInstructions": ignored,
			"requiresOAuth": readRequiresOAuth, "apiKey": readAPIKey, "oauth_headers": ignored,
			"customUserVars": ignored, "startup": ignored, "chatMenu": ignored, "iconPath": ignored, "stderr": ignored,
			"obo": noteKey("obo has no effect here: a person has no token of LibreChat to exchange"),
		},
	}
	inspectorDialect = &dialect{
		client: ClientInspector, unit: time.Millisecond,
		keys: map[string]key{
			"connectionTimeout": durationKey(connectTimeout), "requestTimeout": durationKey(callTimeout),
			"protocolEra": readEra, "modernLogLevel": ignored, "taskTtl": ignored, "paginatedLists": ignored,
			"advertisedExtensions": ignored, "settings": ignored,
			"roots":    readEntryRoots,
			"metadata": noteKey("metadata has no effect here"),
		},
	}
	tbxarkDialect = &dialect{
		client: ClientTBXark, syntax: plainSyntax, unit: time.Second,
		keys: map[string]key{"options": readTBXarkOptions},
	}
	otherDialect = &dialect{
		client: ClientOther, syntax: plainSyntax, unit: time.Millisecond,
		keys: map[string]key{
			"allowedTools": toolsKey(allowTools), "excludedTools": toolsKey(denyTools), "envFile": readEnvFileName,
		},
	}
)

func readHelper(_ *entryReader, n *node) error {
	return at(n, "it is a command that prints headers, and is not run: write headers with a variable of the environment")
}

func readEnvFileName(r *entryReader, n *node) (err error) {
	r.envFile, err = n.str()
	return err
}

// readCopilotTools reads the list of tools, of which "*" is all.
func readCopilotTools(r *entryReader, n *node) error {
	names, err := n.array()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		r.s.DenyTools = append(r.s.DenyTools, "*")
	}
	r.s.AllowTools = append(r.s.AllowTools, names...)
	return nil
}

// readEnvKeys takes variables whose values goose has in its keyring from the environment.
func readEnvKeys(r *entryReader, n *node) error {
	names, err := n.array()
	if err != nil {
		return err
	}
	for _, name := range names {
		value, ok := r.v.m.env(name)
		switch {
		case r.v.own[name] != "":
			continue
		case !ok:
			return at(n, "the value of %s is in goose's keyring, which is not read: set it in the environment", name)
		}
		r.fixed = append(r.fixed, Header{name, value})
	}
	return nil
}

// gooseVariables lets headers and URL name the variables of the entry.
func gooseVariables(v *variables, n *node) {
	v.own = map[string]string{}
	if envs := n.get("envs"); envs != nil {
		for _, m := range envs.members {
			v.own[m.name] = m.value.text
		}
	}
}

// librechatInputs makes inputs of what each user of LibreChat is asked for.
func librechatInputs(v *variables, n *node) {
	v.inputs = map[string]Input{}
	if asked := n.get("customUserVars"); asked != nil {
		for _, m := range asked.members {
			description := orEmpty(m.value.get("title")).text
			v.inputs[m.name] = Input{ID: m.name, Description: description, Password: true}
		}
	}
}

// oauth is what the entry says of authorization, made when it is first needed.
func (r *entryReader) oauth() *OAuth {
	if r.s.OAuth == nil {
		r.s.OAuth = &OAuth{}
	}
	return r.s.OAuth
}

func oauthText(field func(*OAuth) *string) key {
	return func(r *entryReader, n *node) error {
		value, err := n.scalar()
		*field(r.oauth()) = value
		return err
	}
}

// readScopes takes an array, or scopes with space between them.
func readScopes(r *entryReader, n *node) error {
	list, err := n.list()
	if err != nil {
		return err
	}
	r.oauth().Scopes = strings.Fields(strings.Join(list, " "))
	return nil
}

func readCallbackPort(r *entryReader, n *node) error {
	port, err := n.number()
	if err != nil || port < 1 || port > 65535 || port != float64(int(port)) {
		return at(n, "expected a port from 1 to 65535")
	}
	r.oauth().CallbackPort = int(port)
	return nil
}

// oauthKeys are members of oauth, in the spellings of all clients.
var oauthKeys = map[string]key{
	"clientId": clientIDKey, "client_id": clientIDKey, "CLIENT_ID": clientIDKey,
	"clientSecret": clientSecretKey, "client_secret": clientSecretKey, "CLIENT_SECRET": clientSecretKey,
	"scopes": readScopes, "scope": readScopes, "callbackPort": readCallbackPort,
	"authServerMetadataUrl": metadataURLKey, "metadataUrl": metadataURLKey,
	"authorization_url": readEndpoint, "token_url": readEndpoint, "authorizationUrl": readEndpoint, "tokenUrl": readEndpoint,
	"enterpriseManaged": noteKey("oauth: enterpriseManaged has no effect here"),
}

var (
	clientIDKey     = oauthText(func(o *OAuth) *string { return &o.ClientID })
	clientSecretKey = oauthText(func(o *OAuth) *string { return &o.ClientSecret })
	metadataURLKey  = oauthText(func(o *OAuth) *string { return &o.MetadataURL })
)

// readEndpoint notes that endpoints are discovered.
func readEndpoint(r *entryReader, _ *node) error {
	const text = "oauth: the endpoints are found by discovery, and not taken from the entry"
	for _, note := range r.s.Notes {
		if note == text {
			return nil
		}
	}
	r.s.note(text)
	return nil
}

// readOAuth takes an object, or false for no authorization.
func readOAuth(r *entryReader, n *node) error {
	if n.kind == kindBool {
		r.s.NoOAuth = r.s.NoOAuth || n.text == "false"
		return nil
	}
	if n.kind != kindObject {
		return at(n, "expected an object or false, found %s", n.kind)
	}
	r.oauth()
	for _, m := range n.members {
		read := oauthKeys[m.name]
		if read == nil || m.value.kind == kindNull {
			continue
		}
		if err := read(r, m.value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func readNoOAuth(r *entryReader, n *node) error {
	off, err := n.boolean()
	r.s.NoOAuth = r.s.NoOAuth || off
	return err
}

func readRequiresOAuth(r *entryReader, n *node) error {
	on, err := n.boolean()
	r.s.NoOAuth = r.s.NoOAuth || err == nil && !on
	return err
}

// readAPIKey makes the header that LibreChat would send.
func readAPIKey(r *entryReader, n *node) error {
	key, header := "", "Authorization"
	if n.get("source").is(kindString) && n.get("source").text == "user" {
		r.v.inputs["apiKey"] = Input{ID: "apiKey", Description: "API key of " + r.s.Name, Password: true}
		key = "{{apiKey}}"
	} else if n.get("key").is(kindString) {
		key = n.get("key").text
	}
	if key == "" {
		return at(n, "it has no key: add one, such as ${MY_KEY}")
	}
	if custom := n.get("custom_header"); custom.is(kindString) {
		header = custom.text
	}
	prefix := "Bearer "
	if kind := n.get("authorization_type"); kind.is(kindString) {
		prefix = map[string]string{"bearer": "Bearer ", "basic": "Basic "}[kind.text]
	}
	r.s.Headers = append(r.s.Headers, Header{header, prefix + key})
	return nil
}

// readEra keeps which protocol versions are spoken.
func readEra(r *entryReader, n *node) error {
	era, err := n.str()
	if err != nil {
		return err
	}
	if era != "auto" && era != "" {
		r.s.Versions = []string{era}
	}
	return nil
}

// readEntryRoots reads the roots of one entry.
func readEntryRoots(r *entryReader, n *node) error {
	if n.kind != kindArray {
		return at(n, "expected an array, found %s", n.kind)
	}
	for _, item := range n.items {
		uri, err := orEmpty(item.get("uri")).str()
		if err != nil || item.kind != kindObject {
			return at(item, "a root is an object with uri, and perhaps name")
		}
		name := ""
		if given := item.get("name"); given != nil {
			if name, err = given.str(); err != nil {
				return err
			}
		}
		r.s.Roots = append(r.s.Roots, Root{uri, name})
	}
	if len(r.s.Roots) > 0 {
		r.s.note("roots of an entry count in 'parley inspect --config' alone: write roots into parley.jsonc")
	}
	return nil
}

// readTBXarkOptions reads the filter of tools.
func readTBXarkOptions(r *entryReader, n *node) error {
	filter := n.get("toolFilter")
	if filter == nil {
		return nil
	}
	names, err := orEmpty(filter.get("list")).list()
	if err != nil {
		return err
	}
	mode, err := orEmpty(filter.get("mode")).scalar()
	switch {
	case err != nil:
		return err
	case strings.EqualFold(mode, "allow"):
		r.s.AllowTools = append(r.s.AllowTools, names...)
	case strings.EqualFold(mode, "block"):
		r.s.DenyTools = append(r.s.DenyTools, names...)
	default:
		return at(filter, "mode is allow or block")
	}
	return nil
}

// orEmpty is n, or an empty string if there is none.
func orEmpty(n *node) *node {
	if n == nil {
		return &node{kind: kindString}
	}
	return n
}
