package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/parley-mcp/parley/schema"
)

// A tag that would check nothing is refused with what to write; those of other
// libraries are none of our business.
func TestMisspeltTags(t *testing.T) {
	str, num := reflect.TypeFor[string](), reflect.TypeFor[int]()
	for _, c := range []struct {
		typ       reflect.Type
		tag, want string
	}{
		{str, `json:"a" minlength:"5"`, "write minLength"},
		{str, `json:"a" minLen:"5"`, "write minlen"},
		{str, `json:"a" MaxLen:"5"`, "write maxlen"},
		{str, `json:"a" minlne:"5"`, "write minlen"},
		{num, `json:"a" maximun:"5"`, "write maximum"},
		{num, `json:"a" Min:"5"`, "write min"},
		{str, `json:"a" enums:"a,b"`, "write enum"},
		{str, `json:"a" Enum:"a,b"`, "write enum"},
		{str, `json:"a" patern:"a"`, "write pattern"},
		{str, `json:"a" defalt:"a"`, "write default"},
		{num, `json:"a" exclusiveMinimum:"0"`, "ToolOptions.InputSchema"},
		{num, `json:"a" multipleOf:"2"`, "ToolOptions.InputSchema"},
		{str, `json:"a", minlen:"5"`, "cannot be read"},
		{str, `json:"a" jsonschema:"words" validate:"min=3" db:"a" yaml:"a" xml:"a" bson:"a" form:"a" query:"a" env:"A" mapstructure:"a"`, ""},
		{str, `json:"a" required:"true" example:"x" binding:"required" map:"x" bin:"x" num:"1" uri:"a" protobuf:"bytes,1,opt,name=a" gorm:"size:255"`, ""},
		{str, `json:"a" description:"words" minLength:"1" maxLength:"9"`, ""},
		{str, `just words`, ""},
	} {
		typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: c.typ, Tag: reflect.StructTag(c.tag)}})
		_, err := schema.For(typ, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.tag, err, c.want)
		}
	}
	hidden := reflect.StructOf([]reflect.StructField{{Name: "A", Type: str}, {Name: "b", PkgPath: "example.com/x", Type: str, Tag: `json:"b"`}})
	if _, err := schema.For(hidden, nil); err == nil || !strings.Contains(err.Error(), "field b has a json tag but is not exported") {
		t.Errorf("got %v", err)
	}
}
