package tasks_test

import (
	"path/filepath"
	"testing"

	"github.com/parley-mcp/parley/internal/clausetest"
)

// A must is a clause of a specification that binds a server or a client, and the tests that fail
// if this package breaks it.
type must struct {
	clause string // the section and, in our words, what is demanded
	side   clausetest.Side
	tests  []string
}

const (
	theServer = clausetest.Server
	theClient = clausetest.Client
)

// extensionMusts are the clauses with MUST of specification/draft/tasks.md of ext-tasks, and those
// with SHOULD that its conformance suite lists for servers and does not check.
var extensionMusts = []must{
	{
		"Capability Negotiation: no task where the request does not declare the extension", theServer,
		[]string{"TestWithoutExtension", "TestDeclaredByEachRequest"},
	},
	{
		"Capability Negotiation: the capability of 2025-11-25 does not declare it", theServer,
		[]string{"TestDeclaredByEachRequest"},
	},
	{
		"Capability Negotiation: -32021 names the extension if the call must be a task", theServer,
		[]string{"TestWithoutExtension", "TestDeclaredByEachRequest"},
	},
	{
		"Capability Negotiation: a call may come to a result or to a task", theClient,
		[]string{"TestCallBecomesTask", "TestStartWithoutTask", "TestClientEverywhere"},
	},
	{
		"Capability Negotiation: a task for another method is an invalid response", theClient,
		[]string{"TestTaskElsewhere"},
	},
	{
		"Polymorphic Results: resultType of a created task is task", theServer,
		[]string{"TestLife", "TestDeclaredByEachRequest"},
	},
	{
		"Polymorphic Results: resultType of no other result is task", theServer,
		[]string{"TestLife", "TestAfter", "TestQuestions", "TestCancel"},
	},
	{
		"Task Status: failed is for JSON-RPC errors only", theServer,
		[]string{"TestLife"},
	},
	{
		"Task Creation: answered when tasks/get knows the task", theServer,
		[]string{"TestAnsweredWhenCreated", "TestCreateMadeAndFailed"},
	},
	{
		"Task Creation: the answer waits until other processes know the task", theServer,
		[]string{"TestAnsweredWhenCreated", "TestEitherProcess"},
	},
	{
		"Task Creation, SHOULD: questions before the task are asked by rounds", theServer,
		[]string{"TestBegin", "TestBeginSurvives"},
	},
	{
		"Task Polling: tasks/get of a working task", theServer,
		[]string{"TestLife"},
	},
	{
		"Task Polling: tasks/get of a task that waits has inputRequests", theServer,
		[]string{"TestQuestions", "TestSupersededQuestion"},
	},
	{
		"Task Polling: inputRequests hold all open questions", theServer,
		[]string{"TestQuestions"},
	},
	{
		"Task Polling: tasks/get of a completed task has the result", theServer,
		[]string{"TestLife", "TestResults"},
	},
	{
		"Task Polling: tasks/get of a cancelled task", theServer,
		[]string{"TestCancel"},
	},
	{
		"Task Polling: tasks/get of a failed task has the error", theServer,
		[]string{"TestLife"},
	},
	{
		"Task Polling: resultType of tasks/get is complete", theServer,
		[]string{"TestLife", "TestQuestions", "TestCancel"},
	},
	{
		"Task Update Requests: a question is treated as one that comes alone", theClient,
		[]string{"TestAnswersTask", "TestGivenUp", "TestQuestionKeys"},
	},
	{
		"Task Update Requests: a key is unique in its task", theServer,
		[]string{"TestKeysAreUsedOnce", "TestKeyInOtherProcess"},
	},
	{
		"Task Update Requests: no key is used again after its answer", theServer,
		[]string{"TestKeysAreUsedOnce"},
	},
	{
		"Task Update Requests: no key stands for two questions", theServer,
		[]string{"TestKeysAreUsedOnce", "TestKeyInOtherProcess"},
	},
	{
		"Task Update Requests: answers are of open questions", theClient,
		[]string{"TestWithdrawnQuestion", "TestQuestionKeys"},
	},
	{
		"Task Update Requests: the acknowledgement is empty", theServer,
		[]string{"TestQuestions"},
	},
	{
		"Task Update Requests: resultType of the acknowledgement is complete", theServer,
		[]string{"TestQuestions"},
	},
	{
		"Task Update Requests, SHOULD: an unknown task is an error", theServer,
		[]string{"TestUnknownTasks"},
	},
	{
		"Task Update Requests, SHOULD: answers to keys that are not open are ignored", theServer,
		[]string{"TestQuestions", "TestSupersededQuestion"},
	},
	{
		"Task Cancellation: not by notifications/cancelled", theClient,
		[]string{"TestCancelOverHTTP"},
	},
	{
		"Task Cancellation: the acknowledgement is empty", theServer,
		[]string{"TestCancel"},
	},
	{
		"Task Cancellation: resultType of the acknowledgement is complete", theServer,
		[]string{"TestCancel"},
	},
	{
		"Task Cancellation, SHOULD: an unknown task is an error", theServer,
		[]string{"TestUnknownTasks"},
	},
	{
		"Task Status Notifications: taskIds without the extension are refused", theServer,
		[]string{"TestDeclaredByEachRequest"},
	},
	{
		"Task Status Notifications: no progress and no log messages on the stream", theServer,
		[]string{"TestOnlyStatesOnSubscription"},
	},
	{
		"Routing Headers: Mcp-Name is the taskId", theClient,
		[]string{"TestRequestsOverHTTP"},
	},
	{
		"Protocol Errors: an unknown task is -32602", theServer,
		[]string{"TestUnknownTasks", "TestStrangeIDs"},
	},
	{
		"Protocol Errors: internal errors are -32603", theServer,
		[]string{"TestStoreFails"},
	},
	{
		"Protocol Errors: -32021 for the three methods and for taskIds", theServer,
		[]string{"TestWithoutExtension", "TestDeclaredByEachRequest"},
	},
	{
		"Task Execution Errors: a failed task has the JSON-RPC error", theServer,
		[]string{"TestLife"},
	},
	{
		"Task Execution Errors, SHOULD: a failed task has a statusMessage", theServer,
		[]string{"TestLife", "TestKeyInOtherProcess"},
	},
	{
		"Task Execution Errors: isError is a completed task with its result", theServer,
		[]string{"TestLife"},
	},
	{
		"Task Execution Errors: the error and the result are those of the call", theServer,
		[]string{"TestLife", "TestResults"},
	},
	{
		"Security Considerations: identifiers cannot be guessed", theServer,
		[]string{"TestIdentifiers"},
	},
	{
		"Security Considerations: each request is checked for its caller", theServer,
		[]string{"TestUnknownTasks", "TestScopesOfGet"},
	},
	{
		"Security Considerations: questions of a task are trusted no more than others", theClient,
		[]string{"TestAnswersTask", "TestQuestionKeys"},
	},
}

// coreMusts are the clauses with MUST on receivers of basic/utilities/tasks of 2025-11-25, for
// servers: this module's clients receive no tasks.
var coreMusts = []must{
	{
		"Capabilities: tasks are declared", theServer,
		[]string{"TestCoreTasks", "TestCoreMemberIgnored"},
	},
	{
		"Tool-Level Negotiation: -32601 without the member task if it is required", theServer,
		[]string{"TestCoreTasks"},
	},
	{
		"Tool-Level Negotiation, SHOULD: -32601 with the member task if it is forbidden", theServer,
		[]string{"TestCoreTasks"},
	},
	{
		"Task Support and Handling: the member task is ignored where it is not declared", theServer,
		[]string{"TestCoreMemberIgnored"},
	},
	{
		"Task ID Requirements: a string that the server makes", theServer,
		[]string{"TestCoreMessages", "TestIdentifiers"},
	},
	{
		"Task ID Requirements: unique", theServer,
		[]string{"TestIdentifiers", "TestCoreCancelAndList"},
	},
	{
		"Task Status Lifecycle: a task begins as working", theServer,
		[]string{"TestCoreMessages", "TestCoreTasks"},
	},
	{
		"Task Status Lifecycle: only the transitions of the diagram", theServer,
		[]string{"TestCoreQuestions", "TestStorm"},
	},
	{
		"Task Status Lifecycle: an ended task does not change", theServer,
		[]string{"TestCoreStaysCancelled", "TestCancel", "TestStorm"},
	},
	{
		"Input Required Status: a question has the task that it is of", theServer,
		[]string{"TestCoreQuestions"},
	},
	{
		"TTL and Resource Management: createdAt in all messages", theServer,
		[]string{"TestCoreMessages"},
	},
	{
		"TTL and Resource Management: lastUpdatedAt in all messages", theServer,
		[]string{"TestCoreMessages"},
	},
	{
		"TTL and Resource Management: ttl in tasks/get, null without end", theServer,
		[]string{"TestCoreMessages"},
	},
	{
		"Result Retrieval: the answer to the call is the created task", theServer,
		[]string{"TestCoreTasks"},
	},
	{
		"Result Retrieval: tasks/result of an ended task is its result or error", theServer,
		[]string{"TestCoreTasks"},
	},
	{
		"Result Retrieval: tasks/result of another waits for the end", theServer,
		[]string{"TestCoreTasks", "TestCoreCancelAndList"},
	},
	{
		"Associating Task-Related Messages: questions and results have the task", theServer,
		[]string{"TestCoreQuestions", "TestCoreTasks"},
	},
	{
		"Associating Task-Related Messages: taskId counts, not _meta", theServer,
		[]string{"TestCoreRelatedTaskIgnored"},
	},
	{
		"Task Listing: nextCursor while there are more", theServer,
		[]string{"TestCoreCancelAndList"},
	},
	{
		"Task Listing: what tasks/get knows is listed", theServer,
		[]string{"TestCoreCancelAndList", "TestCoreListStatus"},
	},
	{
		"Task Cancellation: an ended task is -32602", theServer,
		[]string{"TestCoreCancelAndList"},
	},
	{
		"Task Cancellation: cancelled before the response", theServer,
		[]string{"TestCoreCancelAndList", "TestCoreStaysCancelled"},
	},
	{
		"Task Cancellation: cancelled for good", theServer,
		[]string{"TestCoreStaysCancelled"},
	},
	{
		"Related Task Metadata: tasks/result has it", theServer,
		[]string{"TestCoreTasks", "TestCoreOutcomeNullMeta"},
	},
	{
		"Protocol Errors: -32602 for unknown tasks and cursors", theServer,
		[]string{"TestCoreCancelAndList", "TestCoreRelatedTaskIgnored"},
	},
	{
		"Task Execution Errors: tasks/result has the same error or result", theServer,
		[]string{"TestCoreTasks"},
	},
	{
		"Task Isolation and Access Control: tasks are bound to their caller", theServer,
		[]string{"TestCoreCancelAndList"},
	},
	{
		"Task Isolation and Access Control: identifiers cannot be guessed", theServer,
		[]string{"TestIdentifiers"},
	},
	{
		"Task Isolation and Access Control: foreign tasks are refused and not listed", theServer,
		[]string{"TestCoreCancelAndList"},
	},
}

// Each MUST of the two specifications has a test, by name.
func TestMusts(t *testing.T) {
	for specification, rows := range map[string][]must{"ext-tasks": extensionMusts, coreVersion: coreMusts} {
		clauses := make([]clausetest.Clause, len(rows))
		for i, row := range rows {
			clauses[i] = clausetest.Clause{Text: row.clause, Side: row.side, Tests: row.tests}
		}
		problems, err := clausetest.Problems(".", filepath.Join("..", "..", "docs", "guide", "tasks.md"), clauses)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", specification, p)
		}
	}
}
