"""Services, products, programs and devices that a tool names if it serves them. Data of this project.

Written for this project from general knowledge. Who asks for a card in Trello is not helped by a tool for cards that
knows nothing of Trello: a name of this list which a document does not mention is evidence against it. Names that are
also everyday words are left out, and so is what people mostly talk about and seldom mean to use.
"""

from __future__ import annotations

_SERVICES = """
adobe adyen airbnb airflow airtable akamai alexa algolia alibaba aliexpress amplitude ansible apt argocd arxiv asana
athena audacity auth0 autocad backblaze bamboohr bandcamp barclays basecamp bigquery binance bitbucket bitwarden
blender bluesky bluetooth brew brex buildkite bumble calendly camunda canva cassandra celonis chatgpt chocolatey
chroma circleci clickhouse clickup clockify cloudflare cloudformation cloudinary cockroachdb coda cognito coinbase
confluence confluent contentful cosmos cosmosdb coursera cron crontab cups databricks datadog dbt deezer deliveroo dhl
digitalocean discord docker dockerhub docusign doordash dropbox drupal duckdb dune duolingo dynamodb ebay ec2 eclipse
elasticsearch elevenlabs eventbrite evernote exa excel expedia facebook fargate fastly fedex feishu ffmpeg figma
firebase firecrawl fitbit fivetran flipkart flutter freshbooks freshdesk ftp garmin ghost gimp gitea github gitkraken
gitlab glue godaddy grafana groupon grubhub gumroad gusto handbrake harvest helm heroku homeassistant homebrew
hootsuite hubspot hue icloud ikea imagemagick imap imdb influxdb instacart instagram intellij intercom iptables itunes
jenkins jfrog jira joomla kafka kajabi kayak keynote kibana kinesis klarna klaviyo kodi kubernetes lambda lark
lastpass latitude launchdarkly lightroom linear linkedin linode looker loom lyft magento mailchimp mailgun mariadb
marketo mastodon mattermost maven medium messenger metabase minio miro mixpanel mongodb monzo motherduck mysql n8n
nagios neo4j nest netflix netlify netsuite newrelic nextcloud nginx nintendo notepad notion npm obs obsidian okta
onedrive onenote opensearch openstack opentable opsgenie oracle outlook pacman pagerduty paypal peloton perplexity
photoshop pinecone pinterest pip pipedrive plaid playstation playwright plex postgres postgresql posthog postmark
powerpoint prefect prometheus puppeteer quickbooks quora rabbitmq raspberry reddit redis redshift revolut ring roblox
roomba route53 rsync rundeck ryanair sagemaker salesforce samsung sap selenium sendgrid sentry servicenow sharepoint
shopify signal siri skype slack smartsheet smartthings smtp snapchat snowflake sns snyk solidworks sonarqube sonos
soundcloud splunk spotify sqlite sqs squarespace ssh steam strava stripe substack surveymonkey systemd tableau
tailscale tavily telegram terraform tesla tidal tiktok tinder todoist toggl trello tripadvisor twilio twitch twitter
typeform uber ubereats unity unreal ups vagrant vault venmo vercel viber vimeo virtualbox vmware vpn walmart waze
wechat weebly whatsapp wifi wix woocommerce wordpress workday xbox xero xing yelp youtube yum zapier zendesk zillow
zoho zoom zotero
"""

_DEVICES = """
alarm blinds boiler bulb bulbs camera cameras car charger chromecast coffee dishwasher doorbell drone dryer earbuds
fan freezer fridge garage gate guitar headphones headset heater heating hoover jacuzzi kettle keyboard lamp lamps
lawnmower lock locks mic microphone microwave monitor oven printer printers projector robot router scanner smartwatch
sofa speaker speakers sprinkler sprinklers stove telescope television thermostat toaster torch tumble tv vacuum washer
washing watch webcam webcams
"""

_DEEDS = """
amazonprime applemusic applepay applewatch appstore bankaccount bankcard barcode barcodes bbciplayer bet bitcoin blood
blurry bootable broker brokerage cab cartoon casino chmod creditcard crypto debitcard deepfake dual ethereum euro
euros executable exif githubactions googleads googleanalytics googlemeet googlepay googlephotos gpg heartbeat
heartrate heic homeassistant iban icloudphotos installer iplayer ipod iso itunes jpeg jpegs jpg jpgs kindle lottery
mkv mortgage mov mp4 newrelic nrql oyster oystercard passport pedometer playstore powerautomate powerbi prescription
primevideo pulse qr qrcode raffle redhat ringtone screensaver selfie shares sharpen skybox stl stocks tar tarball taxi
thermometer unzip upscale visualstudio wallet wallpaper watermark zip
"""

_LEFT_OUT = """
alarm bitcoin car coffee crypto dual fan garage gate ghost guitar harvest keynote latitude lightroom linear lock medium
messenger monitor nest ring robot shares signal sofa steam torch tumble unity wallet watch
wifi
"""

PRODUCTS: frozenset[str] = frozenset((_SERVICES + _DEVICES + _DEEDS).split()) - frozenset(_LEFT_OUT.split())
"""Names in lower case, one word each; those of two words are written as one."""
