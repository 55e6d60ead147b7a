#include "base/alloc.h"
#include "base/buf.h"
#include "config.h"
#include "event/json.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

static struct agent a;

/* Parses text as /dir/f.yaml would be read. */
static bool
reads(const char *text, const char *what)
{
	struct err e = ERR_INIT;
	int rc;

	agent_release(&a);
	rc = agent_parse(&a, text, strlen(text), "f.yaml", "/dir", &e);
	if (!ok(rc == 0, "%s is accepted", what))
		printf("#   %s\n", e.msg);
	return rc == 0;
}

/* want is the beginning of the message. */
static void
refuses_bytes(const char *text, size_t len, enum err_code code, const char *want, const char *what)
{
	struct err e = ERR_INIT;
	int rc;

	agent_release(&a);
	rc = agent_parse(&a, text, len, "f.yaml", "/dir", &e);
	ok(rc == -1 && e.code == code, "%s is refused (%d)", what, (int)e.code);
	e.msg[strlen(want) < sizeof(e.msg) ? strlen(want) : 0] = '\0';
	is_str(e.msg, want, "... and the message says where and why");
	is_str(a.name, "agent", "... and the agent is what it is without a file");
}

static void
refuses(const char *text, const char *want, const char *what)
{
	refuses_bytes(text, strlen(text), ERR_CONFIG, want, what);
}

static void
defaults(void)
{
	reads("", "an empty file");
	is_str(a.name, "agent", "the default name");
	ok(a.prompt == NULL && a.model.provider == NULL && a.store == NULL && !a.has_knowledge, "nothing else is there");
	ok(a.expose_tool && a.write_event_log && a.compact.choice.strategy == NULL && a.aggregates_n == 0, "AG2's defaults");
	is_str(a.bootstrap, "default", "the default bootstrap");
	ok(a.model.temperature < 0, "no temperature");
	reads("# nothing\n---\n# here\n", "a file of comments");
	reads("knowledge:\n", "knowledge without a value");
	ok(a.has_knowledge && a.expose_tool, "... is a store with its defaults");
	reads("prompt:\nname: ~\nassembly: null\n", "keys without values");
	ok(a.prompt == NULL && a.assembly_n == 0, "... are as if they were not there");
	is_str(a.name, "agent", "... also the name");
	reads("\xef\xbb\xbfname: x\r\nprompt: y\r\n", "a BOM and CRs");
	is_str(a.name, "x", "... and what follows it");
	is_str(a.prompt, "y", "... in the next line too");
}

/* The example of the manual, whole. */
static void
whole(void)
{
	static const char text[] =
	    "name: journal\n"
	    "prompt: You are a daily journal companion.\n"
	    "model: {provider: openai, model: gpt-5, base_url: 'http://127.0.0.1:1/v1', api_key_env: K, api_key_cmd: pass x,\n"
	    "        api_key_file: k, cacert: ca, cert: /c.pem, cert_key: sub/key, cert_pass_env: P, cert_pass_cmd: pass y, cert_pass_file: p,\n"
	    "        temperature: 0.7, max_tokens: 100, timeout: 1.5, cache: true}\n"
	    "knowledge:\n"
	    "  store: disk:./journal-state\n"
	    "  expose_tool: false\n"
	    "  write-event-log: true\n"
	    "  bootstrap: exec:./seed\n"
	    "  compact: tail-window:100\n"
	    "  compact_trigger: {max_events: 200, max_tokens: 0, chars_per_token: 4}\n"
	    "  aggregate:\n"
	    "    - {strategy: working_memory, model: 'openai:gpt-5-mini', prompt: '{existing} {events}'}\n"
	    "    - {strategy: conversation-summary, trigger: {every_n_turns: 3}}\n"
	    "    - exec: ./own\n"
	    "    - exec:./other\n"
	    "  aggregate_trigger: {every_n_turns: 10, every_n_events: 0, on_end: true}\n"
	    "assembly:\n"
	    "  - working_memory\n"
	    "  - episodic_memory: {max_episodes: 3}\n"
	    "  - alert:\n"
	    "  - inject:./facts | head\n"
	    "  - exec: ./own\n"
	    "  - sliding-window: {max-events: 80}\n"
	    "  - sliding_window: 80\n"
	    "  - sliding_window:80\n"
	    "layout: ag2\n"
	    "tools:\n"
	    "  - {name: weather, description: Of a place, parameters: {type: object}, exec: ./weather}\n"
	    "  - exec: ./runbook-tool\n"
	    "  - ./more\n"
	    "  - knowledge\n";

	if (!reads(text, "the whole example"))
		return;
	is_str(a.name, "journal", "name");
	is_str(a.prompt, "You are a daily journal companion.", "prompt");
	is_str(a.dir, "/dir", "the directory of its commands");
	is_str(a.model.provider, "openai", "model: provider");
	is_str(a.model.model, "gpt-5", "model: model");
	is_str(a.model.base_url, "http://127.0.0.1:1/v1", "model: base_url");
	is_str(a.model.api_key_env, "K", "model: api_key_env");
	is_str(a.model.api_key_cmd, "pass x", "model: api_key_cmd");
	is_str(a.model.api_key_file, "/dir/k", "model: api_key_file is beside the file");
	is_str(a.model.cacert, "/dir/ca", "model: cacert");
	is_str(a.model.cert, "/c.pem", "model: cert");
	is_str(a.model.cert_key, "/dir/sub/key", "model: cert_key");
	is_str(a.model.cert_pass_env, "P", "model: cert_pass_env");
	is_str(a.model.cert_pass_cmd, "pass y", "model: cert_pass_cmd");
	is_str(a.model.cert_pass_file, "/dir/p", "model: cert_pass_file");
	is_str(a.model.cwd, "/dir", "model: cwd");
	ok(a.model.temperature == 0.7 && a.model.max_tokens == 100 && a.model.timeout == 1.5 && a.model.cache, "model: numbers");
	is_str(a.store, "disk:/dir/./journal-state", "the store is beside the file");
	ok(a.has_knowledge && !a.expose_tool && a.write_event_log, "knowledge: switches");
	is_str(a.bootstrap, "exec:./seed", "bootstrap");
	is_str(a.compact.choice.strategy->name, "tail-window", "compact: strategy");
	ok(a.compact.choice.target == 100 && a.compact.max_events == 200 && a.compact.max_tokens == 0 && a.compact.chars_per_token == 4,
	    "compact: target and trigger");
	ok(a.compact.model.provider == NULL, "compact: the agent's model");
	is_int((long long)a.aggregates_n, 4, "four aggregates");
	is_str(a.aggregates[0].choice.strategy->name, "working-memory", "the first one's strategy");
	is_str(a.aggregates[0].model.model, "gpt-5-mini", "... model");
	is_str(a.aggregates[0].prompt, "{existing} {events}", "... template");
	ok(a.aggregates[0].every_n_turns == 10 && a.aggregates[0].on_end, "... has the common trigger");
	is_str(a.aggregates[1].choice.strategy->name, "conversation-summary", "the second one's strategy");
	ok(a.aggregates[1].every_n_turns == 3 && !a.aggregates[1].on_end, "... has its own trigger alone");
	is_str(a.aggregates[2].choice.command, "./own", "exec: CMD as a map");
	is_str(a.aggregates[3].choice.command, "./other", "exec:CMD as a string");
	is_int((long long)a.assembly_n, 8, "eight policies");
	is_str(policy_spec_name(&a.assembly[1]), "episodic_memory", "a policy with parameters");
	is_str(a.assembly[1].params[0].value, "3", "... and their value");
	is_str(a.assembly[3].command, "./facts | head", "inject:CMD as a string");
	is_str(a.assembly[4].command, "./own", "exec: CMD as a map");
	is_str(policy_spec_name(&a.assembly[5]), "sliding_window", "dashes in a policy's name and keys");
	is_int((long long)a.tools_n, 4, "four tools");
	is_str(a.tools[0].name, "weather", "a declared tool's name");
	is_str(a.tools[0].description, "Of a place", "... description");
	is_str(a.tools[0].command, "./weather", "... command");
	is_str(a.tools[0].cwd, "/dir", "... directory");
	ok(a.tools[1].name == NULL && a.tools[1].parameters == NULL, "a tool that declares itself");
	is_str(a.tools[2].command, "'/dir/./more'", "a tool by its file");
	ok(a.tools[3].command == NULL, "the knowledge tool by its name");
	is_str(a.tools[3].name, "knowledge", "... has its name");
}

static void
schema_is(const char *yaml, const char *want)
{
	char *text = xasprintf("tools: [{name: t, exec: x, parameters: %s}]\n", yaml);
	struct buf b = BUF_INIT;

	if (reads(text, "a schema")) {
		json_write(&b, a.tools[0].parameters, JSON_COMPACT);
		is_str(b.data, want, "... %s", want);
	}
	buf_release(&b);
	free(text);
}

static void
schemas(void)
{
	schema_is("{type: object, required: [a, 'b'], \"x\": {}}", "{\"type\":\"object\",\"required\":[\"a\",\"b\"],\"x\":{}}");
	schema_is("{a: true, b: False, c: null, d: ~, e: , f: 'true', g: yes, h: \"\"}",
	    "{\"a\":true,\"b\":false,\"c\":null,\"d\":null,\"e\":null,\"f\":\"true\",\"g\":\"yes\",\"h\":\"\"}");
	schema_is("{a: 1, b: -7, c: 1.50, d: 0x1F, e: 0o17, f: +5, g: 007, h: '1', i: 1_0, j: 2512292042121000001}",
	    "{\"a\":1,\"b\":-7,\"c\":1.50,\"d\":31,\"e\":15,\"f\":5,\"g\":7,\"h\":\"1\",\"i\":\"1_0\",\"j\":2512292042121000001}");
	schema_is("{a: .5, b: 1e3, c: 123456789012345678901234567890, d: 1.2.3, e: -, f: 1e, g: 0x}",
	    "{\"a\":0.5,\"b\":1e3,\"c\":123456789012345678901234567890,\"d\":\"1.2.3\",\"e\":\"-\",\"f\":\"1e\",\"g\":\"0x\"}");
	schema_is("{a_b: 1, a-b: 2}", "{\"a_b\":1,\"a-b\":2}");
	refuses("tools:\n- name: t\n  exec: x\n  parameters: {a: .inf}\n", "f.yaml:4: JSON cannot hold", "infinity in a schema");
}

static void
strictness(void)
{
	refuses("name: &a x\n", "f.yaml:1: anchors are not allowed ('&a')", "an anchor");
	refuses("name: x\nprompt: *a\n", "f.yaml:2: aliases are not allowed ('*a')", "an alias");
	refuses("name: x\n*a : y\n", "f.yaml:2: aliases are not allowed", "an alias as key");
	refuses("name: x\ntools: &l [*l]\n", "f.yaml:2: anchors are not allowed", "a list that contains itself");
	refuses("name: !!str x\n", "f.yaml:1: tags are not allowed", "a tag");
	refuses("name: x\nprompt: p\nname: y\n", "f.yaml:3: the key 'name' is already in line 1", "a key that comes twice");
	refuses("tools: [{exec: x, name: t, parameters: {a: 1,\n b: 2, a: 3}}]\n", "f.yaml:2: the key 'a' is already in line 1",
	    "a key that comes twice in a schema");
	refuses("knowledge:\n  write_event_log: true\n  write-event-log: false\n",
	    "f.yaml:3: the key 'write-event-log' is already in line 2", "a key in both spellings");
	refuses("name: x\n---\nname: y\n", "f.yaml:2: a second document", "a second document");
	refuses("[a, b]\n", "f.yaml:1: an agent file is a map of keys, not a list", "a list as a file");
	refuses("just text\n", "f.yaml:1: an agent file is a map of keys, not text", "text as a file");
	refuses("? [a]\n: b\n", "f.yaml:1: a key must be plain text", "a list as a key");
	refuses("name: x\nprompt: \"a\\0b\"\n", "f.yaml:2: a value contains a NUL", "a NUL in a value");
	refuses("name: x\nprompt: a: b\n", "f.yaml:2: mapping values are not allowed", "broken YAML");
	refuses("name: x\nprompt: [a\n", "f.yaml:3: did not find expected ',' or ']'", "an open list");
	refuses_bytes("name: x\nprompt: \xff\n", 18, ERR_CONFIG, "f.yaml:2: ", "invalid UTF-8");
	refuses_bytes("name: x\nprompt: a\0b\n", 20, ERR_CONFIG, "f.yaml:2: ", "a NUL in the file");
}

static void
unknown(void)
{
	refuses("name: x\npromt: y\n", "f.yaml:2: unknown key 'promt'; did you mean 'prompt'?", "a misspelt key");
	refuses("model:\n  provider: openai\n  model: m\n  basurl: x\n", "f.yaml:4: unknown key 'basurl'; did you mean 'base_url'?",
	    "a misspelt key of the model");
	refuses("knowledge:\n  compact-trigge: {}\n", "f.yaml:2: unknown key 'compact-trigge'; did you mean 'compact_trigger'?",
	    "a misspelt key with a dash");
	refuses("colour: blue\n", "f.yaml:1: unknown key 'colour'", "a key that is like none");
	refuses("name: x\n<<: {prompt: y}\n", "f.yaml:2: unknown key '<<'", "a merge key");
	refuses("assembly:\n  - sliding_windw: 80\n", "f.yaml:2: ", "an unknown policy in a map");
	refuses("assembly:\n  - alert\n  - sliding_windw:80\n", "f.yaml:3: ", "an unknown policy as a string");
	refuses("assembly:\n  - sliding_window: {max_event: 8}\n", "f.yaml:2: ", "an unknown parameter");
	refuses("assembly:\n  - sliding_window: {max_events: many}\n", "f.yaml:2: ", "a parameter of the wrong type");
	refuses("assembly:\n  - sliding_window\n", "f.yaml:2: ", "a policy without its required parameter");
	refuses("knowledge: {compact: tail-windw:5}\n", "f.yaml:1: unknown strategy 'tail-windw'; did you mean 'tail-window'?",
	    "a misspelt strategy");
	refuses("knowledge: {aggregate: tail-window:5}\n", "f.yaml:1: unknown strategy 'tail-window'", "compaction as aggregation");
	refuses("model: opnai:gpt\n", "f.yaml:1: ", "an unknown provider");
	refuses("model: {provider: openai, model: m, api_key: sk-1}\n", "f.yaml:1: keys are not kept in this file",
	    "a key in the file");
}

static void
types(void)
{
	refuses("name: [x]\n", "f.yaml:1: 'name' must be text, not a list", "a list as name");
	refuses("prompt: {a: b}\n", "f.yaml:1: 'prompt' must be text, not a map", "a map as prompt");
	refuses("name: ''\n", "f.yaml:1: 'name' must be one line of text", "an empty name");
	refuses("model: [x]\n", "f.yaml:1: 'model' must be PROVIDER:MODEL or a map, not a list", "a list as model");
	refuses("model: {provider: openai}\n", "f.yaml:1: 'model' lacks the key 'model'", "a provider without a model");
	refuses("model: {model: 'openai:m', max_tokens: -1}\n", "f.yaml:1: 'max_tokens' must be a whole number", "a negative number");
	refuses("model: {model: 'openai:m', max_tokens: 1.5}\n", "f.yaml:1: 'max_tokens' must be a whole number", "a part of a token");
	refuses("model: {model: 'openai:m', temperature: hot}\n", "f.yaml:1: 'temperature' must be a number", "text as a number");
	refuses("model: {model: 'openai:m', cache: yes}\n", "f.yaml:1: 'cache' must be true or false", "yes as a boolean");
	refuses("model: {model: 'openai:m', cache: 'true'}\n", "f.yaml:1: 'cache' must be true or false", "a quoted boolean");
	refuses("knowledge: true\n", "f.yaml:1: 'knowledge' must be a map, not text", "true as knowledge");
	refuses("assembly: alert\n", "f.yaml:1: 'assembly' must be a list of policies, not text", "text as assembly");
	refuses("assembly:\n- [alert]\n", "f.yaml:2: 'this entry' must be a policy, not a list", "a list as a policy");
	refuses("assembly:\n- {alert: {}, conversation: {}}\n", "f.yaml:2: an entry of 'assembly' is one policy", "two policies as one");
	refuses("assembly:\n- alert: [x]\n", "f.yaml:2: the parameters of 'alert' must be a map", "a list of parameters");
	refuses("assembly:\n- alert:\n    delivered: {}\n", "f.yaml:3: 'delivered' must be text, not a map", "a map as parameter");
	refuses("tools: {exec: x}\n", "f.yaml:1: 'tools' must be a list of tools, not a map", "a map as tools");
	refuses("tools:\n- name: x\n", "f.yaml:2: a tool lacks the key 'exec'", "a tool without a program");
	refuses("tools:\n- exec: x\n  description: d\n", "f.yaml:2: a tool that is declared here lacks the key 'name'",
	    "a declaration without name");
	refuses("tools:\n- {exec: x, name: 'a b'}\n", "f.yaml:2: the tool name 'a b'", "a name that providers refuse");
	refuses("tools:\n- {exec: x, name: t, parameters: [a]}\n", "f.yaml:2: 'parameters' must be a map", "a list as schema");
	refuses("layout: cash\n", "f.yaml:1: 'layout' must be ag2 or cache, not 'cash'", "an unknown layout");
	refuses("assembly:\n  - {sliding_window: {max_events: 4, step: 5}}\n", "f.yaml:2: sliding-window: step is from 0 to max_events, not 5",
	    "a step larger than its window");
	reads("layout: cache\n", "a layout");
	ok(a.layout_cache, "... is the one that keeps caches warm");
	reads("model: {model: 'openai:m', max_tokens: '100', temperature: '0.5'}\n", "a quoted number");
	ok(a.model.max_tokens == 100 && a.model.temperature == 0.5, "... is that number, as on a command line");
	reads("name: 2024\nprompt: true\n", "a number and a boolean as text");
	is_str(a.name, "2024", "... are the text that stands there");
}

static void
upkeep(void)
{
	refuses("knowledge: {compact: tail-window}\n", "f.yaml:1: the strategy 'tail-window' needs a target", "a window without target");
	refuses("knowledge: {compact: 'tail-window:x'}\n", "f.yaml:1: target must be a whole number", "a target that is no number");
	refuses("knowledge: {compact: {target: 5}}\n", "f.yaml:1: 'compact' lacks the key 'strategy'", "a target without strategy");
	refuses("knowledge: {compact: {strategy: 'exec:x', target: 5}}\n", "f.yaml:1: the strategy 'exec' has no target",
	    "a target of a command");
	refuses("knowledge: {compact: 'exec:'}\n", "f.yaml:1: the strategy 'exec' lacks its command", "exec: without a command");
	refuses("knowledge: {compact: {strategy: summarize, target: 5, exec: x}}\n",
	    "f.yaml:1: 'strategy' and 'exec' exclude each other", "a strategy and a command");
	refuses("knowledge: {aggregate: 'working-memory:5'}\n", "f.yaml:1: the strategy 'working-memory' has no parameters",
	    "a parameter of a strategy that has none");
	refuses("knowledge:\n  compact_trigger: {max_events: 100}\n  compact: tail-window:100\n",
	    "f.yaml:3: max_events (100) must be greater than the target (100)", "a trigger that would fire at once again");
	refuses("knowledge:\n  compact: tail-window:5\n  write_event_log: false\n", "f.yaml:2: 'compact' needs the event log",
	    "compaction of no log");
	refuses("knowledge: {compact_trigger: {chars_per_token: 0}}\n", "f.yaml:1: 'chars_per_token' must be a whole number from 1 to 1000000, or auto",
	    "no characters per token");
	refuses("knowledge: {compact_trigger: {every_n_turns: 1}}\n", "f.yaml:1: unknown key 'every_n_turns'",
	    "a trigger of the other kind");
	refuses("knowledge: {bootstrap: defualt}\n", "f.yaml:1: 'bootstrap' must be default, none or exec:CMD", "an unknown bootstrap");
	refuses("knowledge: {bootstrap: 'exec:'}\n", "f.yaml:1: 'bootstrap' must be", "a bootstrap without a command");
	reads("knowledge:\n  compact: tail-window:100\n  compact_trigger: {max_events: 101}\n", "a trigger just above the target");
	reads("knowledge: {compact: {strategy: tail_window, target: 100}}\n", "a strategy as a map");
	ok(a.compact.choice.target == 100 && a.compact.max_events == -1 && a.compact.max_tokens == -1, "... without a trigger");
	reads("knowledge: {compact: 'summarize:target=7', aggregate: []}\n", "a target with its key");
	is_str(a.compact.choice.strategy->name, "summarize", "... its strategy");
	is_int(a.compact.choice.target, 7, "... and its number");
	reads("knowledge: {compact: 'exec:a: b'}\n", "a command with a colon");
	is_str(a.compact.choice.command, "a: b", "... is everything behind the first");
}

static void
store_is(const char *url, const char *want)
{
	char *text = xasprintf("knowledge: {store: '%s'}\n", url);

	if (reads(text, url))
		is_str(a.store, want, "... is %s", want);
	free(text);
}

static void
stores(void)
{
	store_is("disk:state", "disk:/dir/state");
	store_is("disk:/state", "disk:/state");
	store_is("sqlite:x.db?sync=full", "sqlite:/dir/x.db?sync=full");
	store_is("state", "/dir/state");
	store_is("./a:b", "/dir/./a:b");
	store_is("../x.db", "/dir/../x.db");
	store_is("/abs/x.db", "/abs/x.db");
	store_is("memory:", "memory:");
	store_is("redis://h/0?prefix=x", "redis://h/0?prefix=x");
	refuses("knowledge: {store: ~/x}\n", "f.yaml:1: '~' is not expanded here", "a tilde");
	refuses("knowledge: {store: 'disk:~/x'}\n", "f.yaml:1: '~' is not expanded here", "a tilde behind a scheme");
}

/* ---- size ---- */

static void
repeat(struct buf *b, const char *text, size_t n)
{
	while (n-- > 0)
		buf_adds(b, text);
}

static void
refuses_buf(struct buf *b, const char *want, const char *what)
{
	refuses_bytes(b->data, b->len, ERR_CONFIG, want, what);
	buf_reset(b);
}

static void
sizes(void)
{
	struct buf b = BUF_INIT;
	struct rusage before, after;
	int i;

	getrusage(RUSAGE_SELF, &before);
	buf_adds(&b, "a: &a [x,x,x,x,x,x,x,x,x]\n");
	for (i = 'b'; i <= 'i'; i++)
		buf_addf(&b, "%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1,
		    i - 1, i - 1);
	refuses_buf(&b, "f.yaml:1: anchors are not allowed", "a tower of aliases");
	repeat(&b, "[", 10000);
	refuses_buf(&b, "f.yaml:1: nested deeper than 64", "10 000 open lists");
	repeat(&b, "{a: ", 10000);
	refuses_buf(&b, "f.yaml:1: nested deeper than 64", "10 000 open maps");
	repeat(&b, "- ", 10000);
	refuses_buf(&b, "f.yaml:1: nested deeper than 64", "10 000 lists in one line");
	for (i = 0; i < 2000; i++) {
		repeat(&b, " ", (size_t)i);
		buf_adds(&b, "a:\n");
	}
	refuses_buf(&b, "f.yaml:65: nested deeper than 64", "2 000 steps down");
	getrusage(RUSAGE_SELF, &after);
	ok(after.ru_maxrss - before.ru_maxrss < 50 * 1024, "all that took less than 50 MB");

	buf_adds(&b, "tools: [{exec: x, name: t, parameters: {a: [");
	repeat(&b, "1,", 600000);
	buf_adds(&b, "]}}]\n");
	refuses_buf(&b, "f.yaml:1: more than 500000 values", "600 000 values");

	buf_adds(&b, "name: big\nprompt: |\n");
	repeat(&b, "  a line of a prompt that is long, as those are which people generate\n", 6 * 1024 * 1024 / 70);
	ok(b.len > 6000000, "a plain file of 6 MB");
	if (reads(b.data, "a plain file of 6 MB"))
		ok(strlen(a.prompt) > 5900000, "... and its text is whole");
	buf_reset(&b);
	repeat(&b, "# a comment\n", 8 * 1024 * 1024 / 12 + 2);
	refuses_buf(&b, "f.yaml: larger than 8388608 bytes", "a file over 8 MiB");
	buf_release(&b);
}

/* ---- files ---- */

static char *
file_with(const char *name, const char *text, mode_t mode)
{
	char *path = xasprintf("%s/%s", tmpdir(), name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(fd, mode) < 0)
		bail("cannot make %s", path);
	close(fd);
	return path;
}

static void
mode_is(mode_t mode, int code)
{
	char *path = file_with("m.yaml", "name: x\n", mode);
	struct err e = ERR_INIT;
	int rc;

	agent_release(&a);
	rc = agent_read(&a, path, &e);
	ok(code == 0 ? rc == 0 : rc == -1 && (int)e.code == code, "a file of mode %03o is %s", (unsigned)mode,
	    code == 0 ? "read" : "refused");
	free(path);
}

static void
files(void)
{
	char *path = file_with("a.yaml", "name: x\nknowledge: {store: s}\n", 0644), *want, *dir;
	struct err e = ERR_INIT;

	mode_is(0600, 0);
	mode_is(0644, 0);
	mode_is(0664, ERR_PERM);
	mode_is(0646, ERR_PERM);
	agent_release(&a);
	ok(agent_read(&a, path, &e) == 0, "a file is read");
	dir = realpath(tmpdir(), NULL);
	want = xasprintf("%s/s", dir);
	is_str(a.dir, dir, "... its directory is known");
	is_str(a.store, want, "... its store is beside it");
	free(want);
	want = xasprintf("%s/a.yaml", dir);
	is_str(a.file, want, "... its name is absolute");
	free(want);
	agent_release(&a);
	ok(agent_read(&a, "/nonexistent/a.yaml", &e) == -1 && e.code == ERR_NOINPUT, "a file that is not there");
	agent_release(&a);
	ok(agent_read(&a, dir, &e) == -1 && e.code == ERR_CONFIG, "a directory is no agent file");
	agent_release(&a);
	ok(agent_read(&a, "/dev/null", &e) == 0, "/dev/null is an agent with all defaults");
	free(dir);
	free(path);
}

int
main(void)
{
	agent_init(&a);
	defaults();
	whole();
	schemas();
	strictness();
	unknown();
	types();
	upkeep();
	stores();
	sizes();
	files();
	agent_release(&a);
	return done();
}
