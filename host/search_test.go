package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/mcp"
)

// searchServers are servers of many domains: for each the style of its names,
// and things with the verbs of their tools and the names of their arguments.
var searchServers = []struct {
	name, style string
	things      []string // thing, what it is, verbs, arguments
}{
	{"github", "snake", []string{
		"issue|issue of a repository|create list get update close|owner repo title body labels",
		"pull_request|pull request|create list merge review update|owner repo head base",
		"branch|branch of a repository|create list delete get compare|owner repo from",
		"file|file in a repository|get create delete update search|owner repo path content",
		"release|published release|create list get delete update|owner repo tag",
	}},
	{"gitlab", "snake", []string{
		"merge_request|merge request|create list merge approve update|project source target",
		"pipeline|continuous integration pipeline|list run cancel retry get|project ref",
		"project|project|create list fork archive search|namespace visibility",
		"milestone|milestone of a project|create list close update get|project due",
		"runner|machine that runs jobs|list register pause remove get|runner tags",
	}},
	{"jira", "camel", []string{
		"Ticket|ticket|create search assign transition get|project summary assignee",
		"Sprint|sprint of a board|create start complete list update|board goal",
		"Board|board|list get create configure delete|project filter",
		"Worklog|time that was spent on a ticket|add list update delete export|ticket hours",
		"Epic|epic that groups tickets|create list update link get|project name",
	}},
	{"slack", "snake", []string{
		"message|message in a channel|post schedule delete search update|channel text thread",
		"channel|channel of the workspace|create list archive join rename|name private",
		"reaction|emoji reaction on a message|add list remove count get|channel emoji",
		"user|member of the workspace|list get invite deactivate lookup|user email",
		"reminder|reminder for a member|create list complete delete snooze|text time",
	}},
	{"gmail", "snake", []string{
		"email|email|send search read forward archive|to subject body attachments",
		"draft|unsent email|create list send delete update|to subject",
		"label|label of emails|create list apply remove rename|name color",
		"attachment|file attached to an email|list download save count preview|message folder",
		"vacation_responder|automatic answer while away|enable disable get update test|text until",
	}},
	{"calendar", "camel", []string{
		"Event|appointment in a calendar|create list cancel move get|start end attendees location",
		"Invitation|invitation to an appointment|accept decline list forward get|event",
		"FreeTime|time in which all attendees are free|find suggest list compare get|attendees duration",
		"Room|meeting room|book list release search get|capacity floor",
		"Holiday|public holiday|list add remove import get|country year",
	}},
	{"drive", "snake", []string{
		"document|document|create read share export copy|title folder format",
		"folder|folder|create list move delete share|name parent",
		"permission|right of a person to a file|grant revoke list update get|file role",
		"revision|earlier version of a file|list restore compare delete get|file revision",
		"spreadsheet|spreadsheet|create read append clear format|sheet range values",
	}},
	{"filesystem", "snake", []string{
		"file|file on this computer|read write move delete search|path content",
		"directory|directory on this computer|create list delete watch compare|path depth",
		"archive|zip or tar archive|create extract list test split|path target",
		"disk_usage|space that is used on a disk|get report compare watch list|path unit",
		"symlink|symbolic link|create resolve delete list check|path target",
	}},
	{"postgres", "kebab", []string{
		"query|SQL query|run explain cancel save list|sql parameters",
		"table|table of the database|create describe drop truncate list|schema name columns",
		"index|index of a table|create drop rebuild list analyze|table columns",
		"backup|backup of the database|create restore list verify delete|target compression",
		"role|login role of the database|create alter drop list grant|name password",
	}},
	{"kubernetes", "kebab", []string{
		"pod|pod of a cluster|list delete describe exec logs|namespace selector container",
		"deployment|deployment|scale restart rollback list apply|namespace replicas image",
		"secret|secret of a namespace|create list rotate delete get|namespace key",
		"node|node of a cluster|drain cordon list describe label|node",
		"config-map|configuration of programs|create update list delete get|namespace data",
	}},
	{"aws", "snake", []string{
		"s3_object|object in a bucket|upload download delete list copy|bucket key",
		"ec2_instance|virtual machine|start stop terminate list resize|instance type region",
		"lambda_function|function without a server|invoke deploy list delete configure|name payload",
		"dns_record|record of a domain name|create list update delete check|zone type value",
		"cost_report|report of what the cloud costs|get forecast export compare list|month service",
	}},
	{"stripe", "snake", []string{
		"payment|payment by card|create capture list cancel get|amount currency card",
		"refund|refund of a payment|create list cancel get update|payment amount reason",
		"customer|customer|create search update delete merge|email name",
		"invoice|invoice|create send void list pay|customer items due",
		"subscription|subscription of a customer|create cancel pause upgrade list|customer plan",
	}},
	{"shopify", "camel", []string{
		"Order|order of a shop|list fulfill cancel get refund|order status",
		"Product|product of a shop|create update archive search list|title price stock",
		"Inventory|stock of products in a warehouse|adjust transfer count list reserve|product quantity location",
		"Discount|discount code|create disable list get apply|code percent",
		"Shipment|parcel on its way to a buyer|create track cancel label list|order carrier",
	}},
	{"browser", "snake", []string{
		"page|web page|open close reload print scroll|url",
		"screenshot|picture of the web page|take compare save crop annotate|selector",
		"element|element of the web page|click hover type select drag|selector text",
		"cookie|cookie of a web site|list set delete export clear|domain name",
		"tab|tab of the browser|open close switch list duplicate|index",
	}},
	{"maps", "camel", []string{
		"Route|route between two places|plan compare share save optimize|origin destination mode",
		"Place|place such as a restaurant or shop|search describe review list bookmark|query radius",
		"Address|postal address|geocode validate reverse format complete|address country",
		"Traffic|traffic on roads|check forecast report list alert|road time",
		"Distance|distance between places|measure matrix estimate list compare|origins destinations",
	}},
	{"weather", "snake", []string{
		"forecast|weather forecast|get compare subscribe list share|city days",
		"storm_alert|warning of storms and floods|list subscribe acknowledge get map|region severity",
		"air_quality|quality of the air and pollen|get forecast compare list alert|city pollutant",
		"tide|tide of the sea|get list plot predict compare|harbour date",
		"past_weather|measurements of past days|get average export list compare|city from until",
	}},
	{"spotify", "camel", []string{
		"Playlist|playlist|create list shuffle share delete|name tracks",
		"Track|song|play search like skip queue|artist title",
		"Album|album|play save list search rate|artist",
		"Podcast|podcast|follow list play search unfollow|show episode",
		"Volume|volume of the speaker|set mute raise lower get|percent device",
	}},
	{"home", "kebab", []string{
		"light|lamp in a room|switch-on switch-off dim color list|room brightness",
		"thermostat|heating of a room|set get schedule lock list|room degrees",
		"door-lock|lock of a door|lock unlock check list share|door",
		"camera|security camera|view record arm disarm list|camera",
		"vacuum|robot that cleans the floor|start dock schedule map check|room",
	}},
	{"translate", "snake", []string{
		"text|text in another language|translate detect summarize proofread simplify|text target",
		"glossary|list of terms and their translation|create list update delete import|terms",
		"subtitle|subtitle of a film|translate shift merge export check|film language",
		"speech|spoken language|transcribe synthesize detect translate clean|audio voice",
		"dictionary_entry|word in a dictionary|define conjugate list add spell|word",
	}},
	{"crm", "snake", []string{
		"contact|person that the company knows|create search merge import tag|name email phone",
		"deal|possible sale|create advance close list forecast|value stage",
		"lead|possible customer|qualify assign list convert score|source",
		"call_note|note of a phone call|write list search delete share|contact text",
		"campaign|marketing campaign by mail|launch pause report list clone|audience template",
	}},
}

// searchTools makes 500 tools of them.
func searchTools() []searchable {
	var tools []searchable
	for _, server := range searchServers {
		for _, thing := range server.things {
			part := strings.Split(thing, "|")
			for verb := range strings.FieldsSeq(part[2]) {
				name := verb + "_" + part[0]
				switch server.style {
				case "camel":
					name = verb + part[0]
				case "kebab":
					name = verb + "-" + part[0]
				}
				var fields []string
				for argument := range strings.FieldsSeq(part[3]) {
					fields = append(fields, fmt.Sprintf(`%q:{"type":"string","description":"The %s of the %s."}`, argument, argument, part[1]))
				}
				tools = append(tools, searchable{
					server: server.name, name: name,
					description: describeVerb(verb, part[1]),
					schema:      mcp.RawValue(`{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`),
				})
			}
		}
	}
	return tools
}

// verbTexts are how servers describe what a verb does; %s is the thing.
var verbTexts = map[string]string{
	"create":   "Creates a new %s and returns its id.",
	"list":     "Lists every %s, page by page, with optional filters.",
	"get":      "Gets the details of one %s by its id.",
	"update":   "Changes the properties of an existing %s.",
	"delete":   "Deletes a %s. This cannot be undone.",
	"search":   "Finds every %s that matches a query.",
	"stop":     "Shuts a running %s down.",
	"start":    "Starts a %s that is stopped or new.",
	"retry":    "Runs a failed %s again.",
	"restore":  "Restores a %s, going back to what was there before.",
	"track":    "Tells where a %s is now.",
	"compare":  "Shows the differences between two of this kind: %s.",
	"forecast": "Predicts the future: %s.",
}

func describeVerb(verb, thing string) string {
	if text := verbTexts[verb]; text != "" {
		return fmt.Sprintf(text, thing)
	}
	return strings.ToUpper(verb[:1]) + verb[1:] + " a " + thing + "."
}

// searchQueries are what people say, and the tool that they mean.
var searchQueries = [][2]string{
	{"open a new bug on github", "create_issue"},
	{"merge the pull request", "merge_pull_request"},
	{"which branches does the repository have", "list_branch"},
	{"publish a new release on GitHub", "create_release"},
	{"approve a merge request", "approve_merge_request"},
	{"restart the failed CI pipeline", "retry_pipeline"},
	{"fork a gitlab project", "fork_project"},
	{"assign a ticket to a colleague", "assignTicket"},
	{"begin the next sprint", "startSprint"},
	{"log the hours that I spent on a ticket", "addWorklog"},
	{"post a message to a slack channel", "post_message"},
	{"schedule a message for later", "schedule_message"},
	{"invite someone to the workspace", "invite_user"},
	{"remind me of something", "create_reminder"},
	{"send an email with an attachment", "send_email"},
	{"search my mails", "search_email"},
	{"save the attachments of an email to a folder", "save_attachment"},
	{"turn on the out of office vacation answer", "enable_vacation_responder"},
	{"set up a meeting with two attendees", "createEvent"},
	{"find a time when everybody is free", "findFreeTime"},
	{"book a meeting room", "bookRoom"},
	{"decline the invitation", "declineInvitation"},
	{"share a document with a person", "share_document"},
	{"bring back an earlier version of a file", "restore_revision"},
	{"add values to the end of a spreadsheet", "append_spreadsheet"},
	{"read a file on my computer", "read_file"},
	{"unpack a zip archive", "extract_archive"},
	{"how much disk space is used", "get_disk_usage"},
	{"run an SQL query", "run-query"},
	{"show the columns of a database table", "describe-table"},
	{"restore a database from a backup", "restore-backup"},
	{"show the logs of a pod", "logs-pod"},
	{"scale a deployment to more replicas", "scale-deployment"},
	{"upload a file to an S3 bucket", "upload_s3_object"},
	{"shut down a virtual machine", "stop_ec2_instance"},
	{"what did the cloud cost last month", "get_cost_report"},
	{"refund a card payment", "create_refund"},
	{"send an invoice to a customer", "send_invoice"},
	{"cancel a subscription", "cancel_subscription"},
	{"where is the parcel of this order", "trackShipment"},
	{"make a discount code", "createDiscount"},
	{"take a screenshot of the page", "take_screenshot"},
	{"click a button on a web page", "click_element"},
	{"directions from one place to another", "planRoute"},
	{"find a restaurant nearby", "searchPlace"},
	{"will it rain tomorrow, weather forecast for a city", "get_forecast"},
	{"play a song by an artist", "playTrack"},
	{"switch off the lights in the room", "switch-off-light"},
	{"translate a text into French", "translate_text"},
	{"clean the floor with the robot", "start-vacuum"},
	{"write down a note of the phone call", "write_call_note"},
	{"pause the marketing campaign", "pause_campaign"},
}

// Of 500 tools each that a person means is among the first three.
func TestSearch(t *testing.T) {
	t.Parallel()
	tools := searchTools()
	if len(tools) != 500 || len(searchServers) != 20 || len(searchQueries) < 50 {
		t.Fatalf("%d tools, %d servers, %d queries", len(tools), len(searchServers), len(searchQueries))
	}
	x := newIndex(tools)
	for _, q := range searchQueries {
		found := x.search(q[0], 3)
		var names []string
		for _, i := range found {
			names = append(names, tools[i].name)
		}
		if !slices.Contains(names, q[1]) {
			t.Errorf("%q: %s is not in %v", q[0], q[1], names)
		}
	}
}

// Each tool is found by its own name, in any spelling.
func TestSearchByName(t *testing.T) {
	t.Parallel()
	tools := searchTools()
	x := newIndex(tools)
	for i, tool := range tools {
		for _, query := range []string{tool.server + " " + tool.name, strings.NewReplacer("_", " ", "-", " ").Replace(tool.server + "/" + tool.name)} {
			if found := x.search(query, 3); !slices.Contains(found, i) {
				t.Errorf("%q finds %v, want %d", query, found, i)
			}
		}
	}
}

func TestSearchEdges(t *testing.T) {
	t.Parallel()
	x := newIndex([]searchable{
		{server: "b", name: "listFiles"},
		{server: "a", name: "list_files"},
		{server: "c", name: "HTTPServer2Go", schema: mcp.RawValue(`{"properties":{"retries":{"description":"How often"}}}`)},
		{server: "d", name: "broken", schema: mcp.RawValue(`{"properties":[`)},
		{server: "e", name: "übersetzen"},
		{server: "f", name: "deep", schema: mcp.RawValue(`{"properties":{"rows":{"type":"array","items":{"properties":{"colour":{}}}}}}`)},
	})
	for _, c := range []struct {
		query string
		limit int
		want  []int
	}{
		{"list files", 9, []int{1, 0}}, // equal: by server
		{"LISTING FILE", 1, []int{1}},
		{"http server", 9, []int{2}},
		{"httpserver2go", 9, []int{2}},
		{"retry", 9, []int{2}},
		{"brok", 9, []int{3}},
		{"Übersetzen", 9, []int{4}},
		{"colours", 9, []int{5}},
		{"", 9, nil},
		{"?!", 9, nil},
		{"nothing like that", 9, nil},
		{"list", 0, nil},
		{"list", -1, nil},
		{strings.Repeat("word ", 100000) + "list", 9, nil}, // cut
	} {
		if got := x.search(c.query, c.limit); len(got) != len(c.want) || !slices.Equal(got, c.want) {
			t.Errorf("%.30q: got %v, want %v", c.query, got, c.want)
		}
	}
	if got := newIndex(nil).search("x", 3); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestStem(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"file", "files", "filing", "filed"},
		{"create", "creates", "creating", "created"},
		{"query", "queries"},
		{"branch", "branches"},
		{"stop", "stops", "stopping", "stopped"},
		{"merge", "merged", "merging"},
		{"process", "processes", "processing"},
		{"box", "boxes"},
		{"copy", "copies", "copied"},
	} {
		for _, w := range same[1:] {
			if stem(w) != stem(same[0]) {
				t.Errorf("%s is %s, %s is %s", same[0], stem(same[0]), w, stem(w))
			}
		}
	}
	for _, apart := range [][2]string{{"string", "str"}, {"status", "statu"}, {"red", "r"}, {"bus", "bu"}} {
		if stem(apart[0]) == stem(apart[1]) {
			t.Errorf("%v are the same", apart)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	tools := searchTools()
	x := newIndex(tools)
	x.search("x", 1)
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			x.search("save the attachments of an email to a folder on my computer", 10)
		}
	})
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			newIndex(tools).search("x", 1)
		}
	})
}
