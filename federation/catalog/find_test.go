package catalog_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"gatehouse/federation/catalog"
	"gatehouse/gate"
)

// questions are what people ask for, in their own words, and the tool that is
// right. They were written before the search was.
var questions = []struct {
	words string
	want  gate.LocalName
}{
	{"open a new issue on github", "mcp_github_create_issue"},
	{"list pull requests in a github repository", "mcp_github_list_pull_requests"},
	{"close and delete a gitlab merge request", "mcp_gitlab_delete_merge_request"},
	{"show me all gitlab pipelines", "mcp_gitlab_list_pipelines"},
	{"add a worklog to jira", "mcp_jira_createWorklog"},
	{"which sprints are there in jira", "mcp_jira_listSprints"},
	{"change an asana task", "mcp_asana_update_task"},
	{"remove a trello card", "mcp_trello_deleteCard"},
	{"post a message in slack", "mcp_slack_create_message"},
	{"set a slack reminder", "mcp_slack_create_reminder"},
	{"list the channels of a discord server", "mcp_discord_list_channels"},
	{"create a draft in gmail", "mcp_gmail_create_draft"},
	{"turn on gmail vacation responder", "mcp_gmail_update_vacation_responder"},
	{"look at an outlook contact", "mcp_outlook_getContact"},
	{"new google calendar event", "mcp_calendar_create_event"},
	{"find free busy slots in the calendar", "mcp_calendar_list_free_busy_slots"},
	{"rename a google drive folder", "mcp_drive_updateFolder"},
	{"dropbox shared links", "mcp_dropbox_list_shared_links"},
	{"make a notion page", "mcp_notion_create-page"},
	{"edit a confluence blog post", "mcp_confluence_updateBlogPost"},
	{"refund a stripe customer", "mcp_stripe_create_refund"},
	{"list unpaid stripe invoices", "mcp_stripe_list_invoices"},
	{"paypal dispute details", "mcp_paypal_get_dispute"},
	{"shopify gift card erase", "mcp_shopify_delete-gift-card"},
	{"fetch one salesforce opportunity", "mcp_salesforce_getOpportunity"},
	{"hubspot deals", "mcp_hubspot_list_deals"},
	{"modify a zendesk sla policy", "mcp_zendesk_update_sla_policy"},
	{"who is on call in pagerduty", "mcp_pagerduty_list_on_call_shifts"},
	{"create pagerduty incident", "mcp_pagerduty_create_incident"},
	{"datadog monitors", "mcp_datadog_listMonitors"},
	{"silence a grafana alert", "mcp_grafana_create_silence"},
	{"get a sentry replay", "mcp_sentry_get_replay"},
	{"delete a kubernetes pod", "mcp_kubernetes_delete-pod"},
	{"kubernetes config maps", "mcp_kubernetes_list-config-maps"},
	{"docker images on this machine", "mcp_docker_list_images"},
	{"create an s3 bucket", "mcp_aws_create_s3_bucket"},
	{"update lambda function", "mcp_aws_update_lambda_function"},
	{"azure virtual machines", "mcp_azure_list-virtual-machines"},
	{"new cloudflare dns record", "mcp_cloudflare_create-dns-record"},
	{"vercel environment variables", "mcp_vercel_list_environment_variables"},
	{"drop a postgres table", "mcp_postgres_delete_table"},
	{"list mongodb collections", "mcp_mongodb_listCollections"},
	{"mailchimp subscriber update", "mcp_mailchimp_update_subscriber"},
	{"file a leave request", "mcp_hr_createLeaveRequest"},
	{"show my payslip", "mcp_hr_getPayslip"},
	{"will it rain tomorrow in berlin", "mcp_weather_get_forecast"},
	{"street address from latitude and longitude", "mcp_maps_reverse_geocode"},
	{"how do i get from A to B by bicycle", "mcp_maps_directions"},
	{"translate this text into french", "mcp_text_translate"},
	{"convert 100 dollars to euros currency", "mcp_finance_convert_currency"},
	{"share price of a company", "mcp_finance_stock_quote"},
	{"take a screenshot of the page", "mcp_browser_screenshot"},
	{"run some javascript in the browser", "mcp_browser_evaluate"},
	{"read a file from disk", "mcp_fs_read_file"},
	{"run a sql query", "mcp_sql_run_query"},
	{"read text from a scanned photo", "mcp_images_ocr"},
	{"transcribe a recording", "mcp_audio_transcribe"},
	{"join several pdfs", "mcp_pdf_merge"},
	{"where is my parcel", "mcp_shipping_track_parcel"},
	{"send an sms", "mcp_sms_send_text_message"},
}

// realisticOnce imports the 2 000 tools once for all tests that only read them.
var realisticOnce = sync.OnceValue(func() *catalog.Catalog {
	c := openRealistic()
	for id, list := range realisticTools() {
		if r, err := c.Import(context.Background(), id, lists(listing(list...)), false); err != nil || r.Skipped > 0 {
			panic(r.Summary())
		}
	}
	if _, err := c.Enable(nil, "mcp_*"); err != nil {
		panic(err)
	}
	return c
})

var realisticStore = newMemory()

func openRealistic() *catalog.Catalog {
	tools := realisticTools()
	names := make(map[gate.ServerID]string)
	for _, line := range products {
		id, rest, _ := strings.Cut(line, "|")
		names[gate.ServerID(id)], _, _ = strings.Cut(rest, "|")
	}
	var servers []catalog.ServerSettings
	for id := range tools {
		servers = append(servers, server(id, func(s *catalog.ServerSettings) { s.Name = names[id] }))
	}
	c, err := catalog.Open(catalog.Options{Store: realisticStore})
	if err != nil {
		panic(err)
	}
	c.Configure(servers, nil, gate.Enforce)
	return c
}

func TestFindGivesTheRightToolFirst(t *testing.T) {
	s := realisticOnce().Snapshot()
	if n := s.Counts(admin).Offered; n != 2000 {
		t.Fatalf("%d tools are offered, want 2000", n)
	}
	if len(questions) != 60 {
		t.Fatalf("%d questions, want 60", len(questions))
	}
	right := 0
	for _, q := range questions {
		if s.Tool(q.want) == nil {
			t.Fatalf("%q wants %s, which does not exist", q.words, q.want)
		}
		hits := s.Find(admin, q.words, 5)
		if len(hits) > 0 && hits[0].Name == q.want {
			right++
			continue
		}
		var got []gate.LocalName
		for _, h := range hits {
			got = append(got, h.Name)
		}
		t.Logf("%q gives %q, want %s", q.words, got, q.want)
	}
	if right < 54 {
		t.Errorf("the first hit is right for %d of 60 questions, want at least 54", right)
	}
	t.Logf("right: %d of 60", right)
}

func TestFindKeepsToTheView(t *testing.T) {
	s := realisticOnce().Snapshot()
	narrow := &gate.Caller{Name: "n", Admin: true, Groups: gate.OnlyGroups("mcp_gitlab"), Surface: gate.Find}
	hits := s.Find(narrow, "create an issue on github", 10)
	if len(hits) == 0 || hits[0].Name != "mcp_gitlab_create_issue" {
		t.Errorf("got %+v", hits)
	}
	for _, h := range hits {
		if reason, _ := gate.Offered(s.Tool(h.Name), narrow, gate.Enforce); reason != "" {
			t.Errorf("%s is found and not offered: %s", h.Name, reason)
		}
	}
	// What a caller may not see leaves no trace, not even in how words are weighed.
	alone := open(t, newMemory(), server("gitlab", func(s *catalog.ServerSettings) { s.Name = "GitLab" }))
	alone.take("gitlab", realisticTools()["gitlab"]...)
	alone.enable("mcp_gitlab")
	for _, q := range questions {
		if among, only := s.Find(narrow, q.words, 20), alone.Snapshot().Find(narrow, q.words, 20); !slices.Equal(among, only) {
			t.Errorf("%q gives %v among others, %v alone", q.words, among, only)
		}
	}
	if hits := s.Find(&gate.Caller{Name: "plain", Groups: gate.EveryGroup()}, "github", 10); len(hits) != 0 {
		t.Errorf("a caller without rights finds %+v", hits)
	}
	if hits := s.Find(admin, "gatehouse status", 10); slices.ContainsFunc(hits, func(h catalog.Hit) bool { return h.Name == catalog.StatusTool }) {
		t.Error("our own tools are found")
	}
}

func TestFindIsDeterministic(t *testing.T) {
	a, b := realisticOnce(), openRealistic()
	for _, q := range questions {
		if x, y := a.Snapshot().Find(admin, q.words, 20), b.Snapshot().Find(admin, q.words, 20); !slices.Equal(x, y) {
			t.Errorf("%q gives %v, then %v", q.words, x, y)
		}
	}
	for _, words := range []string{"", "   ", "the of and", "\x00\xff", "zzzzqqq"} {
		if hits := a.Snapshot().Find(admin, words, 5); len(hits) != 0 {
			t.Errorf("%q gives %+v", words, hits)
		}
	}
	if hits := a.Snapshot().Find(admin, "mcp_jira_createWorklog", 5); len(hits) == 0 || hits[0].Name != "mcp_jira_createWorklog" {
		t.Errorf("a tool's own name gives %+v", hits)
	}
	if hits := a.Snapshot().Find(admin, "issue", 3); len(hits) != 3 {
		t.Errorf("limit 3 gives %d hits", len(hits))
	}
}
