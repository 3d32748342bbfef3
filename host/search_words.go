package host

import (
	"strings"
	"sync"
)

// stem removes the endings of English words, so that files, filing and filed are
// one word. It is no linguistics: the result is only compared with other stems.
func stem(w string) string {
	switch {
	case len(w) < 4:
		return w
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "zes"),
		strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
	case strings.HasSuffix(w, "s"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed"} {
		if rest, ok := strings.CutSuffix(w, ending); ok && len(rest) >= 3 && strings.ContainsAny(rest, "aeiouy") {
			w = rest
			if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) {
				w = w[:n-1]
			}
			break
		}
	}
	if rest, ok := strings.CutSuffix(w, "e"); ok && len(rest) >= 3 {
		w = rest
	}
	if rest, ok := strings.CutSuffix(w, "y"); ok && len(rest) >= 3 {
		w = rest + "i"
	}
	return w
}

// emptyWords are stems that say nothing of what is searched for.
var emptyWords = sync.OnceValue(func() map[string]bool {
	return stemSet(`a an and any are as at be by can could did do does for from give had has have how
	i if in into is it its let like me my need of on one or our please should so some tell that the their them there
	these this those to tool tools us use using want was we when who will with would you your`)
})

func stemSet(words string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		set[stem(w)] = true
	}
	return set
}

// usualVerbs are stems of what is done most often with a thing.
var usualVerbs = sync.OnceValue(func() map[string]bool { return stemSet("get list create read search find start run send") })

// usualVerb reports whether the name of a tool begins with such a verb.
func usualVerb(name string) bool {
	terms := splitTerms(name)
	return len(terms) > 0 && usualVerbs()[terms[0]]
}

// synonyms gives for each stem those that mean the same in names of tools.
var synonyms = sync.OnceValue(func() map[string][]string {
	return groupStems(
		"delete remove erase drop destroy clear trash discard",
		"create add new make insert open register build",
		"update edit change modify set rename patch alter",
		"list show enumerate browse all which",
		"get read fetch show view retrieve describe lookup see display what",
		"search find query look lookup locate where",
		"track follow locate where",
		"send post deliver write submit publish email",
		"email mail",
		"file document",
		"folder directory",
		"picture image photo screenshot",
		"repository repo project codebase",
		"run execute start launch invoke trigger",
		"start begin launch open enable activate",
		"restart retry rerun repeat reboot again",
		"stop cancel abort terminate kill halt end shut",
		"finish complete close end done",
		"restore recover revert undo back",
		"pay charge payment",
		"refund reimburse",
		"customer client buyer",
		"person user member people contact",
		"meeting event appointment",
		"issue ticket bug",
		"comment reply note remark",
		"copy duplicate clone",
		"move transfer relocate rename",
		"page website url link",
		"schedule plan book reserve",
		"download export fetch",
		"upload import attach",
		"machine server instance vm",
		"talk message chat",
		"task todo",
		"forecast weather rain temperature",
		"route directions way navigate drive",
		"song track music",
		"table spreadsheet",
		"allow grant permit share",
		"forbid revoke deny block",
	)
})

func groupStems(groups ...string) map[string][]string {
	all := make(map[string][]string)
	for _, group := range groups {
		words := strings.Fields(group)
		for _, a := range words {
			for _, b := range words {
				if a, b := stem(a), stem(b); a != b {
					all[a] = append(all[a], b)
				}
			}
		}
	}
	return all
}
