package main

import (
	"github.com/parley-mcp/parley/mcp"
	"github.com/parley-mcp/parley/server"
	"github.com/parley-mcp/parley/strictjson"
)

// filter reads the member "jobs" of a subscription's filter: the ids of jobs. What
// is acknowledged are those of the caller.
func (j *Jobs) filter(c *server.Call, value mcp.RawValue) (mcp.RawValue, []string, error) {
	if !c.HasExtension(extensionID) {
		return nil, nil, server.NeedExtension(extensionID)
	}
	var ids []string
	if err := strictjson.Unmarshal(value, &ids); err != nil {
		return nil, nil, mcp.NewError(mcp.CodeInvalidParams, "jobs: %v", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var found []string
	for _, id := range ids {
		if _, err := j.find(c, id); err == nil {
			found = append(found, id)
		}
	}
	ack, err := strictjson.Marshal(found)
	return ack, found, err
}
