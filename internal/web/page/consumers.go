package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"proffer.dev/proffer/api/rest"
	"proffer.dev/proffer/internal/quantity"
)

const (
	// pageSize is the number of rows on a page of consumers.
	pageSize = 50
	// maxID bounds a cluster ID, and each part of the query of the consumers, in bytes.
	maxID = 253
	// defaultResource is the one by whose amounts rows are sorted.
	defaultResource = "cpu"
)

// The states of a consumer in a class. The first that is true counts.
const (
	// stateWithdrawn: no policy decides any longer.
	stateWithdrawn = "withdrawn"
	// stateInUse: its pods request something.
	stateInUse = "in use"
	// stateGranted: it was granted something.
	stateGranted = "granted"
	// stateOffered: it is offered something.
	stateOffered = "offered"
	// stateNothing: it is offered nothing.
	stateNothing = "nothing"
)

var states = []string{stateWithdrawn, stateInUse, stateGranted, stateOffered, stateNothing}

// consumerRow is what one consumer has in one class.
type consumerRow struct {
	ClusterID, Class, Policy, State string
	// Offered, Granted and Used are as in "cpu 2, memory 4Gi". They are empty until the row is shown.
	Offered, Granted, Used string
	// Because says why there is no offer. It is empty if there is one.
	Because string
	offer   *rest.Offer
}

// stateOf returns the state that an offer is in.
func stateOf(o *rest.Offer) string {
	switch {
	case o.Policy == "":
		return stateWithdrawn
	case isPositive(o.Used):
		return stateInUse
	case isPositive(o.Granted):
		return stateGranted
	case isPositive(o.Resources):
		return stateOffered
	}
	return stateNothing
}

// isPositive reports whether some amount is more than 0.
func isPositive(amounts rest.Amounts) bool {
	for _, q := range amounts {
		if q.Sign() > 0 {
			return true
		}
	}
	return false
}

// rowsOfConsumers returns a row for each consumer and class, by ID and class.
func rowsOfConsumers(view View) (rows []consumerRow) {
	for c := range view.Consumers() {
		for i := range c.Offers {
			o := &c.Offers[i]
			rows = append(rows, consumerRow{
				ClusterID: c.ClusterID, Class: className(o.Class), Policy: o.Policy, State: stateOf(o), offer: o,
			})
		}
		if len(c.Offers) == 0 {
			rows = append(rows, consumerRow{
				ClusterID: c.ClusterID, State: stateNothing, Because: c.Because, offer: &rest.Offer{},
			})
		}
	}
	return rows
}

// write writes the amounts, those of one resource alike.
func (r *consumerRow) write() {
	var lists [3][]string
	for _, name := range resourcesOf(r.offer.Resources) {
		held := []*resource.Quantity{
			r.offer.Resources.Of(name), r.offer.Granted.OrZero(name), r.offer.Used.OrZero(name),
		}
		for i, text := range quantity.Human(name, held...) {
			if i == 0 || held[i].Sign() > 0 {
				lists[i] = append(lists[i], name+" "+text)
			}
		}
	}
	text := func(list []string) string { return cmp.Or(strings.Join(list, ", "), "0") }
	r.Offered, r.Granted, r.Used = text(lists[0]), text(lists[1]), text(lists[2])
}

// sortColumn is a column of the table of consumers, by which its rows are sorted.
type sortColumn struct {
	// Key names the column in the query. Order is the value of aria-sort.
	Key, Title, Order string
	// compare compares two rows, amounts by those of the resource.
	compare func(a, b *consumerRow, name string) int
}

// sortColumns are in the order of the cells. Amounts have the largest first.
var sortColumns = []sortColumn{
	{"", "Consumer", "ascending", func(*consumerRow, *consumerRow, string) int { return 0 }},
	{"class", "Class", "ascending", func(a, b *consumerRow, _ string) int { return cmp.Compare(a.Class, b.Class) }},
	{"state", "State", "ascending", func(a, b *consumerRow, _ string) int {
		return slices.Index(states, a.State) - slices.Index(states, b.State)
	}},
	{"offered", "Offered", "descending", byAmount(func(o *rest.Offer) rest.Amounts { return o.Resources })},
	{"granted", "Granted", "descending", byAmount(func(o *rest.Offer) rest.Amounts { return o.Granted })},
	{"used", "Used", "descending", byAmount(func(o *rest.Offer) rest.Amounts { return o.Used })},
	{"policy", "Policy", "ascending", func(a, b *consumerRow, _ string) int { return cmp.Compare(a.Policy, b.Policy) }},
}

// sortKeys are the keys of sortColumns.
var sortKeys = func() (keys []string) {
	for _, c := range sortColumns {
		keys = append(keys, c.Key)
	}
	return keys
}()

func byAmount(of func(*rest.Offer) rest.Amounts) func(a, b *consumerRow, name string) int {
	return func(a, b *consumerRow, name string) int {
		return of(b.offer).OrZero(name).Cmp(*of(a.offer).OrZero(name))
	}
}

// consumersQuery selects and sorts the rows of a page.
type consumersQuery struct {
	// Filter is a part of the cluster ID. Class and State are empty for all.
	Filter, Class, State string
	// Sort is one of sortKeys, and By the resource of its amounts.
	Sort, By string
	Page     int
}

func readConsumersQuery(r *http.Request) (q consumersQuery, err error) {
	query := r.URL.Query()
	q.Page = 1
	for name, field := range q.texts() {
		if *field = strings.TrimSpace(query.Get(name)); len(*field) > maxID {
			return q, fmt.Errorf("%s has %d bytes: write at most %d", name, len(*field), maxID)
		}
	}
	if q.State != "" && !slices.Contains(states, q.State) {
		return q, fmt.Errorf("state is none of %s", strings.Join(states, ", "))
	}
	if !slices.Contains(sortKeys, q.Sort) {
		return q, fmt.Errorf("sort is none of %s", strings.Join(sortKeys[1:], ", "))
	}
	if text := query.Get("page"); text != "" {
		if q.Page, err = strconv.Atoi(text); err != nil || q.Page < 1 {
			return q, errors.New("page is not a number of 1 or more")
		}
	}
	return q, nil
}

// texts returns the parts of the query but the page, by name.
func (q *consumersQuery) texts() map[string]*string {
	return map[string]*string{"filter": &q.Filter, "class": &q.Class, "state": &q.State, "sort": &q.Sort, "by": &q.By}
}

// Link returns the address of a page that is sorted by a column.
func (q consumersQuery) Link(sort string, page int) string {
	values, to := url.Values{}, q
	to.Sort = sort
	for name, value := range to.texts() {
		if *value != "" && (name != "by" || *value != defaultResource) {
			values.Set(name, *value)
		}
	}
	if page > 1 {
		values.Set("page", strconv.Itoa(page))
	}
	return "?" + values.Encode()
}

// shows reports whether a row is selected.
func (q *consumersQuery) shows(r *consumerRow) bool {
	return strings.Contains(r.ClusterID, q.Filter) && (q.Class == "" || r.Class == q.Class) &&
		(q.State == "" || r.State == q.State)
}

// consumersList is one page of the consumers.
type consumersList struct {
	consumersQuery
	// Classes, States, Sorts and Resources are what can be chosen.
	Classes, States, Sorts, Resources []string
	Columns                           []sortColumn
	// Total is the number of rows that are selected. First and Last are the positions of the shown ones, from 1.
	Total, First, Last, Pages int
	// Previous and Next are the links to the other pages, empty for none.
	Previous, Next string
	Rows           []consumerRow
	Anyone         []rest.Offer
}

// consumersPage shows what each consumer has in each class.
func consumersPage(view View, r *http.Request) (document, error) {
	query, err := readConsumersQuery(r)
	if err != nil {
		return document{}, err
	}
	l := consumersList{
		consumersQuery: query, States: states, Sorts: sortKeys, Columns: sortColumns, Anyone: view.Anyone(),
	}
	rows := rowsOfConsumers(view)
	l.By = cmp.Or(l.By, defaultResource)
	l.Classes, l.Resources = choices(rows, l.Class, l.By)
	rows = slices.DeleteFunc(rows, func(r consumerRow) bool { return !l.shows(&r) })
	compare := sortColumns[slices.Index(sortKeys, l.Sort)].compare
	slices.SortStableFunc(rows, func(a, b consumerRow) int { return compare(&a, &b, l.By) })
	l.Total = len(rows)
	l.Pages = max(1, (l.Total+pageSize-1)/pageSize)
	l.Page = min(l.Page, l.Pages) // Consumers may have gone since the link was made.
	start, end := (l.Page-1)*pageSize, min(l.Page*pageSize, l.Total)
	l.Rows, l.First, l.Last = rows[start:end], start+1, end
	for i := range l.Rows {
		l.Rows[i].write()
	}
	if l.Page > 1 {
		l.Previous = l.Link(l.Sort, l.Page-1)
	}
	if l.Page < l.Pages {
		l.Next = l.Link(l.Sort, l.Page+1)
	}
	return document{Title: "Consumers", Section: "consumers", Body: "consumers", Data: l}, nil
}

// choices returns the classes and the resources of the rows, and those that are chosen, sorted.
func choices(rows []consumerRow, class, by string) (classes, resources []string) {
	ofClass, ofResource := sets.New(class), sets.New(defaultResource, by)
	for i := range rows {
		ofClass.Insert(rows[i].Class)
		for name := range rows[i].offer.Resources {
			ofResource.Insert(name)
		}
	}
	return sets.List(ofClass.Delete("")), sets.List(ofResource)
}
