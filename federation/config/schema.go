package config

// The structs of this file are the file format: every key there is, under the
// table it belongs to. config.example.toml explains each of them.

type file struct {
	table
	Listen     listenTable                `toml:"listen"`
	State      stateTable                 `toml:"state"`
	Operation  operationTable             `toml:"operation"`
	Network    networkTable               `toml:"network"`
	Gate       gateTable                  `toml:"gate"`
	Approval   approvalTable              `toml:"approval"`
	Audit      auditTable                 `toml:"audit"`
	Metrics    metricsTable               `toml:"metrics"`
	Vault      vaultTable                 `toml:"vault"`
	OIDC       oidcTable                  `toml:"oidc"`
	Delegation map[string]delegationTable `toml:"delegation"`
	Callers    []callerTable              `toml:"caller"`
	Servers    []serverTable              `toml:"server"`
}

type listenTable struct {
	table
	Address     text     `toml:"address"`
	PublicURL   text     `toml:"public_url"`
	TLS         tlsTable `toml:"tls"`
	BehindProxy flag     `toml:"behind_proxy"`
}

type tlsTable struct {
	table
	Cert text `toml:"cert"`
	Key  text `toml:"key"`
}

type stateTable struct {
	table
	Path text `toml:"path"`
}

type operationTable struct {
	table
	Timeout span `toml:"timeout"`
}

type networkTable struct {
	table
	PrivateHosts words `toml:"private_hosts"`
	AllowedHosts words `toml:"allowed_hosts"`
	Proxy        text  `toml:"proxy"`
}

type gateTable struct {
	table
	Enforcement text `toml:"data_class_enforcement"`
}

type approvalTable struct {
	table
	Channel      text `toml:"channel"`
	Timeout      span `toml:"timeout"`
	SecondPerson flag `toml:"second_person"`
}

type auditTable struct {
	table
	Arguments  text      `toml:"arguments"`
	Retention  span      `toml:"retention"`
	SigningKey reference `toml:"signing_key"`
}

type metricsTable struct {
	table
	Address text `toml:"address"`
}

type vaultTable struct {
	table
	Identity reference `toml:"identity"`
}

type oidcTable struct {
	table
	Issuer        text         `toml:"issuer"`
	Audience      text         `toml:"audience"`
	RequiredScope text         `toml:"required_scope"`
	JWKSURL       text         `toml:"jwks_url"`
	Console       consoleTable `toml:"console"`
	Rules         []ruleTable  `toml:"rule"`
}

type consoleTable struct {
	table
	ClientID     text      `toml:"client_id"`
	ClientSecret reference `toml:"client_secret"`
	Scopes       words     `toml:"scopes"`
}

type ruleTable struct {
	table
	Claim text `toml:"claim"`
	Value text `toml:"value"`
	rights
}

// rights is what a caller may do, however the caller is recognised.
type rights struct {
	Admin       flag        `toml:"admin"`
	TrustZone   wordOrWords `toml:"trust_zone"`
	Groups      words       `toml:"groups"`
	Dialect     text        `toml:"schema_dialect"`
	NameBudget  number      `toml:"name_budget"`
	NamePrefix  number      `toml:"name_prefix"`
	Surface     text        `toml:"surface"`
	PerMinute   number      `toml:"max_calls_per_minute"`
	Concurrency number      `toml:"max_concurrent_calls"`
}

type callerTable struct {
	table
	Name  text       `toml:"name"`
	Token secretText `toml:"token"`
	rights
}

type delegationTable struct {
	table
	TokenEndpoint    text                  `toml:"token_endpoint"`
	ClientID         text                  `toml:"client_id"`
	ClientSecret     reference             `toml:"client_secret"`
	AllowedAudiences words                 `toml:"allowed_audiences"`
	AllowedScopes    words                 `toml:"allowed_scopes"`
	Grants           map[string]grantTable `toml:"grants"`
}

type grantTable struct {
	table
	Enabled          flag       `toml:"enabled"`
	Subject          secretText `toml:"subject"`
	AllowedAudiences words      `toml:"allowed_audiences"`
	AllowedScopes    words      `toml:"allowed_scopes"`
}

type serverTable struct {
	table
	ID               text            `toml:"id"`
	Name             text            `toml:"name"`
	URL              text            `toml:"url"`
	Enabled          flag            `toml:"enabled"`
	DataClass        text            `toml:"data_class"`
	RequiresApproval flag            `toml:"requires_approval"`
	ApprovalMemory   span            `toml:"approval_memory"`
	Timeout          span            `toml:"timeout"`
	Protocol         text            `toml:"protocol"`
	Session          text            `toml:"session"`
	SessionIdle      span            `toml:"session_idle"`
	MaxSessions      number          `toml:"max_sessions"`
	PerMinute        number          `toml:"max_calls_per_minute"`
	MaxResponse      size            `toml:"max_response"`
	ResultLimit      size            `toml:"result_limit"`
	Alias            map[string]text `toml:"alias"`
	CAFile           text            `toml:"ca_file"`
	ClientCert       text            `toml:"client_cert"`
	ClientKey        text            `toml:"client_key"`
	Auth             authTable       `toml:"auth"`
}

type authTable struct {
	table
	Mode                text      `toml:"mode"`
	Credential          reference `toml:"credential"`
	Header              text      `toml:"header"`
	TokenEndpoint       text      `toml:"token_endpoint"`
	Issuer              text      `toml:"issuer"`
	ClientID            text      `toml:"client_id"`
	ClientSecret        reference `toml:"client_secret"`
	Resource            text      `toml:"resource"`
	Profile             text      `toml:"profile"`
	Audience            text      `toml:"audience"`
	Scopes              words     `toml:"scopes"`
	DiscoveryCredential reference `toml:"discovery_credential"`
}
