package plan_test

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"

	"gatehouse/federation/config"
	"gatehouse/federation/plan"
	"gatehouse/gate"
	"gatehouse/upstream/credential"
)

// untold are fields that are no setting of their own.
var untold = []string{"Path", "Digest", "Line", "AuthenticatedBy", "ServerURL"}

// full is a configuration in which every table is there, so that every field can
// be changed.
func full(t *testing.T) *config.Config {
	cfg := *parse(t, "full.toml", []byte(base))
	cfg.Listen.PublicURL = "https://gate.example.org"
	cfg.OIDC = config.OIDC{Issuer: "https://id.example.org", Audience: "us", RequiredScope: "call",
		Rules: []config.Rule{{Claim: "groups", Value: "ops", Grant: gate.Caller{Groups: gate.EveryGroup()}}}}
	cfg.Delegation = map[string]credential.Profile{"company": {Name: "company", TokenEndpoint: "https://id.example.org/token",
		Grants: map[string]credential.Grant{"alice": {Enabled: true}}}}
	return &cfg
}

// TestNoFieldIsForgotten changes each field of a configuration, one at a time:
// every one shows in the plan. A new key that the plan does not know would come
// into force without anybody having seen it.
func TestNoFieldIsForgotten(t *testing.T) {
	before := full(t)
	seen := 0
	check := func(name string, change func(*config.Config)) {
		after := full(t)
		change(after)
		seen++
		if p := plan.Compare(plan.Side{Config: before, Catalogue: none{}}, plan.Side{Config: after, Catalogue: none{}}); p.Empty() {
			t.Errorf("%s: a change of it is in no plan", name)
		}
	}
	each(reflect.TypeFor[config.Config](), "", func(path []int, name string) {
		check(name, func(c *config.Config) { change(reflect.ValueOf(c).Elem().FieldByIndex(path)) })
	})
	each(reflect.TypeFor[config.Server](), "server.", func(path []int, name string) {
		check(name, func(c *config.Config) {
			c.Servers = slices.Clone(c.Servers)
			change(reflect.ValueOf(&c.Servers[0]).Elem().FieldByIndex(path))
		})
	})
	each(reflect.TypeFor[config.Caller](), "caller.", func(path []int, name string) {
		check(name, func(c *config.Config) {
			c.Callers = slices.Clone(c.Callers)
			change(reflect.ValueOf(&c.Callers[0]).Elem().FieldByIndex(path))
		})
	})
	each(reflect.TypeFor[config.Rule](), "oidc.rule.", func(path []int, name string) {
		if name == "oidc.rule.Grant.Name" { // whoever comes in brings their own
			return
		}
		check(name, func(c *config.Config) { change(reflect.ValueOf(&c.OIDC.Rules[0]).Elem().FieldByIndex(path)) })
	})
	each(reflect.TypeFor[credential.Profile](), "delegation.", func(path []int, name string) {
		if name == "delegation.Name" { // the key of the table
			return
		}
		check(name, func(c *config.Config) {
			profile := c.Delegation["company"]
			change(reflect.ValueOf(&profile).Elem().FieldByIndex(path))
			c.Delegation["company"] = profile
		})
	})
	each(reflect.TypeFor[credential.Grant](), "delegation.grant.", func(path []int, name string) {
		check(name, func(c *config.Config) {
			grant := c.Delegation["company"].Grants["alice"]
			change(reflect.ValueOf(&grant).Elem().FieldByIndex(path))
			c.Delegation["company"].Grants["alice"] = grant
		})
	})
	if seen < 70 {
		t.Errorf("only %d fields were found", seen)
	}
}

// each calls f for every field that holds one value, however deep.
func each(t reflect.Type, prefix string, f func(path []int, name string)) {
	for _, field := range reflect.VisibleFields(t) {
		nested := field.Type.Kind() == reflect.Struct && field.Type.NumField() > 0 && field.Type.Field(0).IsExported()
		lists := field.Type.Kind() == reflect.Map || field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct
		switch {
		case !field.IsExported() || slices.Contains(untold, field.Name) || field.Anonymous || lists && field.Name != "Alias":
		case nested:
			each(field.Type, prefix+field.Name+".", func(path []int, name string) { f(append(slices.Clone(field.Index), path...), name) })
		default:
			f(field.Index, prefix+field.Name)
		}
	}
}

// change gives a field another value.
func change(v reflect.Value) {
	switch old := v.Interface().(type) {
	case credential.Reference:
		ref, err := credential.ParseReference("env:CHANGED")
		if err != nil {
			panic(err)
		}
		v.Set(reflect.ValueOf(ref))
		return
	case gate.Groups:
		v.Set(reflect.ValueOf(gate.OnlyGroups("mcp_changed")))
		return
	case gate.Digest:
		old[0]++
		v.Set(reflect.ValueOf(old))
		return
	case map[gate.RemoteName]string:
		v.Set(reflect.ValueOf(map[gate.RemoteName]string{"a": "b"}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("https://changed.example.org/" + fmt.Sprint(v.Len()))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.Append(v, reflect.ValueOf("changed")))
	default:
		switch {
		case v.CanInt():
			v.SetInt(v.Int() + 1)
		case v.CanUint():
			v.SetUint((v.Uint() + 1) % 2)
		default:
			panic(v.Type().String() + " is not known here")
		}
	}
}

// none is a catalogue without tools.
type none struct{}

func (none) Tool(gate.LocalName) *gate.Tool { return nil }
func (none) Generation() uint64             { return 1 }
func (none) Tools() iter.Seq[*gate.Tool]    { return func(func(*gate.Tool) bool) {} }
func (none) Detail(gate.LocalName) string   { return "" }
