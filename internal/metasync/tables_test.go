package metasync

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// described returns the columns of a sheet as they stand in the schema, and its keys.
func described[K, V comparable](s *sheet[K, V]) (columns, keys []string) {
	keys = strings.Split(s.keys.names, ", ")
	columns = slices.Concat([]string{"id", "cluster_id"}, keys, strings.Split(s.values.names, ", "))
	if s.spec != nil {
		columns = append(columns, "spec")
	}
	return append(columns, "valid_from", "valid_to", "is_open"), keys
}

func TestTheSheetsHaveTheColumnsOfTheTables(t *testing.T) {
	body := regexp.MustCompile(`(?s)CREATE TABLE (?:IF NOT EXISTS )?proffer_(\w+) \((.*?)\n\)`)
	column := regexp.MustCompile(`(?m)^ +([a-z_]+) `)
	for _, engine := range []string{"mysql", "postgresql"} {
		text, err := migrations.ReadFile("migrations/" + engine + "/00001_tables.sql")
		if err != nil {
			t.Fatal(err)
		}
		tables := map[string]string{}
		for _, found := range body.FindAllStringSubmatch(string(text), -1) {
			tables[found[1]] = found[2]
		}
		check := func(name string, columns, keys []string) {
			var got []string
			for _, found := range column.FindAllStringSubmatch(tables[name], -1) {
				got = append(got, found[1])
			}
			if !slices.Equal(got, columns) {
				t.Errorf("%s: proffer_%s has the columns\n%v, and its sheet\n%v", engine, name, got, columns)
			}
			if key := fmt.Sprintf("(cluster_id, %s, is_open)", strings.Join(keys, ", ")); !strings.Contains(tables[name], key) {
				t.Errorf("%s: proffer_%s has no key %s:\n%s", engine, name, key, tables[name])
			}
		}
		s := newTables(time.Minute)
		all := map[string]func() ([]string, []string){
			s.consumers.name: func() ([]string, []string) { return described(&s.consumers) },
			s.policies.name:  func() ([]string, []string) { return described(&s.policies) },
			s.offers.name:    func() ([]string, []string) { return described(&s.offers) },
			s.grants.name:    func() ([]string, []string) { return described(&s.grants) },
			s.usage.name:     func() ([]string, []string) { return described(&s.usage) },
			s.pools.name:     func() ([]string, []string) { return described(&s.pools) },
		}
		if len(all) != len(s.all()) {
			t.Fatalf("%d sheets are checked, and there are %d", len(all), len(s.all()))
		}
		for name, of := range all {
			columns, keys := of()
			check(name, columns, keys)
		}
	}
}
