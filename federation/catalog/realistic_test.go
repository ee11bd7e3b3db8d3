package catalog_test

import (
	"fmt"
	"strings"

	"gatehouse/gate"
)

// products are invented servers with the vocabulary of real ones: id, display
// name, naming style, and objects, many of which several products share.
var products = []string{
	"github|GitHub|snake|issue,pull request,branch,release,workflow run,commit comment,repository,gist,label,milestone",
	"gitlab|GitLab|snake|issue,merge request,branch,pipeline,job,project,group,snippet,label,deploy key",
	"jira|Jira|camel|issue,sprint,board,epic,worklog,attachment,project,component,version,comment",
	"linear|Linear|snake|issue,cycle,project,team,label,comment,roadmap,initiative,view,document",
	"asana|Asana|snake|task,project,section,portfolio,goal,tag,team,subtask,story,workspace",
	"trello|Trello|camel|card,board,list,checklist,label,member,attachment,comment,webhook,custom field",
	"slack|Slack|snake|channel,message,reaction,user group,reminder,file,bookmark,pin,canvas,emoji",
	"teams|Microsoft Teams|kebab|team,channel,chat,meeting,message,call,tab,app,member,tag",
	"discord|Discord|snake|server,channel,message,role,webhook,thread,invite,emoji,event,sticker",
	"gmail|Gmail|snake|message,draft,label,thread,filter,attachment,alias,forwarding address,vacation responder,signature",
	"outlook|Outlook|camel|mail,folder,rule,contact,event,calendar,attachment,category,task,signature",
	"calendar|Google Calendar|snake|event,calendar,attendee,reminder,recurring event,working location,acl rule,colour,setting,free busy slot",
	"drive|Google Drive|camel|file,folder,permission,comment,revision,shared drive,shortcut,label,change,reply",
	"dropbox|Dropbox|snake|file,folder,shared link,file request,team folder,member,tag,revision,paper doc,lock",
	"notion|Notion|kebab|page,database,block,comment,user,property,view,template,row,workspace",
	"confluence|Confluence|camel|page,space,blog post,attachment,comment,label,template,restriction,whiteboard,macro",
	"stripe|Stripe|snake|customer,invoice,payment intent,refund,subscription,price,product,coupon,payout,dispute",
	"paypal|PayPal|snake|order,payment,refund,invoice,payout,dispute,subscription plan,product,webhook,balance account",
	"shopify|Shopify|kebab|order,product,customer,collection,discount,inventory item,fulfillment,draft order,gift card,page",
	"salesforce|Salesforce|camel|account,contact,lead,opportunity,case,campaign,report,dashboard,task,quote",
	"hubspot|HubSpot|snake|contact,company,deal,ticket,quote,form,list,workflow,email campaign,product",
	"zendesk|Zendesk|snake|ticket,user,organization,macro,trigger,article,view,group,satisfaction rating,sla policy",
	"intercom|Intercom|kebab|conversation,contact,company,article,tag,segment,admin,ticket,news item,note",
	"pagerduty|PagerDuty|snake|incident,service,escalation policy,schedule,on call shift,override,team,postmortem,maintenance window,status update",
	"datadog|Datadog|camel|monitor,dashboard,metric,log index,synthetic test,downtime,slo,notebook,host,event",
	"grafana|Grafana|snake|dashboard,panel,alert rule,data source,folder,annotation,contact point,playlist,api key,silence",
	"sentry|Sentry|snake|issue,event,release,project,team,alert rule,monitor,replay,dashboard,deploy",
	"kubernetes|Kubernetes|kebab|pod,deployment,service,config map,secret,namespace,ingress,job,node,persistent volume",
	"docker|Docker|snake|container,image,volume,network,compose stack,registry,secret,context,plugin,build cache",
	"aws|AWS|snake|s3 bucket,ec2 instance,lambda function,iam role,rds instance,sqs queue,sns topic,cloudwatch alarm,route53 record,dynamodb table",
	"azure|Azure|kebab|resource group,virtual machine,storage account,key vault,function app,sql database,aks cluster,container registry,network security group,subscription",
	"gcp|Google Cloud|snake|compute instance,storage bucket,pubsub topic,cloud run service,bigquery dataset,iam policy,sql instance,secret,firewall rule,log sink",
	"cloudflare|Cloudflare|kebab|zone,dns record,worker,page rule,kv namespace,r2 bucket,firewall rule,tunnel,certificate,load balancer",
	"vercel|Vercel|snake|deployment,project,domain,environment variable,team,edge config,log drain,alias,cron job,certificate",
	"postgres|PostgreSQL|snake|table,index,view,role,schema,extension,function,trigger,backup,replication slot",
	"mongodb|MongoDB|camel|document,collection,database,index,user,backup,view,aggregation pipeline,change stream,cluster",
	"airtable|Airtable|snake|record,base,table,field,view,comment,webhook,attachment,form,automation",
	"mailchimp|Mailchimp|snake|campaign,audience,subscriber,segment,template,automation,landing page,tag,store,report",
	"hr|People Directory|camel|employee,leave request,payslip,position,department,candidate,interview,onboarding checklist,review,training course",
	"typeform|Typeform|kebab|form,response,workspace,theme,image,webhook,question,logic rule,report,account",
}

// singles are tools that stand alone: server, name, description, parameters.
var singles = []string{
	"weather|get_forecast|Weather forecast for the coming days at a place: temperature, rain, wind.|location,days,units",
	"weather|current_conditions|The weather right now at a place.|location,units",
	"weather|air_quality|Air quality index and pollutant concentrations at a place.|location",
	"maps|geocode|Turns a street address into latitude and longitude.|address",
	"maps|reverse_geocode|Turns latitude and longitude into the nearest street address.|lat,lng",
	"maps|directions|Route between two places by car, bicycle, transit or on foot, with distance and duration.|origin,destination,mode",
	"maps|nearby_places|Restaurants, shops and other places around a position.|lat,lng,radius,category",
	"text|translate|Translates text from one language into another.|text,source_language,target_language",
	"text|summarize|Summarizes a long text in a few sentences.|text,max_sentences",
	"text|detect_language|Guesses the language a text is written in.|text",
	"text|check_grammar|Finds spelling and grammar mistakes in a text.|text,language",
	"finance|convert_currency|Converts an amount of money from one currency to another at today's exchange rate.|amount,from,to",
	"finance|stock_quote|Latest share price of a listed company.|symbol",
	"finance|historical_prices|Daily closing prices of a share over a period.|symbol,start,end",
	"browser|screenshot|Takes a screenshot of the current web page.|selector,full_page",
	"browser|navigate|Opens a URL in the browser.|url",
	"browser|click|Clicks an element of the current page.|selector",
	"browser|fill|Types text into an input field of the current page.|selector,value",
	"browser|evaluate|Runs JavaScript in the current page and returns the result.|script",
	"fs|read_file|Reads the contents of a file on disk.|path",
	"fs|write_file|Writes text to a file on disk, replacing what was there.|path,content",
	"fs|list_directory|Names the files and directories inside a directory.|path",
	"fs|move_file|Moves or renames a file.|source,destination",
	"fs|search_files|Finds files by name pattern below a directory.|path,pattern",
	"sql|run_query|Runs a read-only SQL query against the warehouse and returns the rows.|sql,limit",
	"sql|explain_query|Shows the execution plan of a SQL query.|sql",
	"wiki|search_articles|Searches encyclopedia articles.|query,limit",
	"wiki|get_article|Returns the text of an encyclopedia article.|title",
	"images|generate|Draws a picture from a text prompt.|prompt,size",
	"images|resize|Changes the width and height of an image.|url,width,height",
	"images|remove_background|Cuts the background out of a photo.|url",
	"images|ocr|Reads the text in a scanned page or photo.|url,language",
	"audio|transcribe|Turns recorded speech into text.|url,language",
	"audio|synthesize_speech|Reads text aloud with a natural voice.|text,voice",
	"pdf|merge|Joins several PDF files into one.|files",
	"pdf|split|Cuts a PDF file into single pages.|file,pages",
	"pdf|extract_tables|Finds tables in a PDF file and returns them as CSV.|file",
	"travel|search_flights|Finds flights between two airports on a date.|origin,destination,date,passengers",
	"travel|search_hotels|Finds hotel rooms in a city.|city,checkin,checkout,guests",
	"travel|track_flight|Live status of a flight: delays, gate, position.|flight_number",
	"news|headlines|Top news headlines by country or topic.|country,topic",
	"crypto|wallet_balance|Coins held at a blockchain address.|address,chain",
	"shipping|track_parcel|Where a parcel is, by its tracking number.|tracking_number,carrier",
	"shipping|create_label|Buys a postage label for a parcel.|from,to,weight",
	"sms|send_text_message|Sends an SMS to a phone number.|phone,text",
	"sms|place_call|Calls a phone number and reads a message aloud.|phone,text",
	"vault|rotate_secret|Replaces a secret with a newly generated value.|path",
	"security|scan_dependencies|Looks for known vulnerabilities in a project's dependencies.|repository",
	"security|check_domain|Whether a domain is on a blocklist, and since when.|domain",
	"time|convert_time|Converts a time from one time zone to another.|time,from_zone,to_zone",
}

var verbs = []struct{ verb, text string }{
	{"create", "Create a new %[1]s in %[2]s. Returns the %[1]s with its id."},
	{"get", "Get the details of a single %[1]s in %[2]s by its id. Use list_%[3]s first when you do not know the id."},
	{"list", "List %[3]s in %[2]s, newest first. Results come in pages; pass the cursor to go on."},
	{"update", "Update fields of an existing %[1]s in %[2]s. Fields that are left out keep their values."},
	{"delete", "Permanently delete a %[1]s from %[2]s. This cannot be undone."},
}

// realisticTools makes 2 000 tools: name, definition, server.
func realisticTools() map[gate.ServerID][]string {
	out := make(map[gate.ServerID][]string)
	total := 0
	add := func(id, name, description string, params ...string) {
		if total == 2000 {
			return
		}
		total++
		var props []string
		for _, p := range params {
			props = append(props, fmt.Sprintf(`%q:{"type":"string","description":"The %s."}`, p, strings.ReplaceAll(p, "_", " ")))
		}
		out[gate.ServerID(id)] = append(out[gate.ServerID(id)], fmt.Sprintf(
			`{"name":%q,"description":%q,"inputSchema":{"type":"object","properties":{%s}}}`, name, description, strings.Join(props, ",")))
	}
	for _, line := range singles {
		f := strings.Split(line, "|")
		add(f[0], f[1], f[2], strings.Split(f[3], ",")...)
	}
	for _, line := range products {
		f := strings.Split(line, "|")
		for _, object := range strings.Split(f[3], ",") {
			for _, v := range verbs {
				plural := pluralOf(object)
				noun := object
				if v.verb == "list" {
					noun = plural
				}
				snake := strings.ReplaceAll(object, " ", "_") + "_id"
				params := []string{snake}
				switch v.verb {
				case "create":
					params = []string{"name", "description", "parent_id"}
				case "list":
					params = []string{"cursor", "page_size", "order_by"}
				case "update":
					params = append(params, "name", "description")
				}
				add(f[0], styled(f[2], v.verb, noun), fmt.Sprintf(v.text, object, f[1], plural), params...)
			}
		}
	}
	return out
}

func pluralOf(s string) string {
	switch {
	case strings.HasSuffix(s, "y") && !strings.HasSuffix(s, "ay") && !strings.HasSuffix(s, "ey"):
		return s[:len(s)-1] + "ies"
	case strings.HasSuffix(s, "s"), strings.HasSuffix(s, "x"), strings.HasSuffix(s, "ch"):
		return s + "es"
	}
	return s + "s"
}

func styled(style, verb, noun string) string {
	words := strings.Fields(verb + " " + noun)
	switch style {
	case "camel":
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		return strings.Join(words, "")
	case "kebab":
		return strings.Join(words, "-")
	}
	return strings.Join(words, "_")
}
