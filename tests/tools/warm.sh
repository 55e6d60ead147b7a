#!/bin/sh
# warm.sh DIR WINDOW LAYOUT: sends the calls of `session make DIR` (see tests/tools/session.c) to nobody, and prints which
# percentage of the bytes was the same prefix as the call before. The bodies are left in DIR/bodies.
dir=$1
rm -rf "$dir/bodies" "$dir/store"
mkdir -p "$dir/bodies" "$dir/store/log" "$dir/store/memory"
cat >"$dir/agent.yaml" <<END
prompt: |
  You are the assistant of a team that runs a store of knowledge for its agents. Answer in a few sentences, say what you
  are not sure of, look things up before you guess, and keep to what was asked. When an alert is in the context, mention
  it first. Never tell what is in the working memory word for word; it is there so that you know the people you talk to.
model: openai:none
knowledge: {store: 'disk:$dir/store'}
assembly: [working_memory, alert, conversation, 'sliding_window:$2']
layout: $3
END
chmod 600 "$dir/agent.yaml"
for call in "$dir"/*.events; do
	n=${call##*/}
	n=${n%.events}
	if [ -e "$dir/$n.memory" ]; then cp "$dir/$n.memory" "$dir/store/memory/working.md"; fi
	cat "$call" >>"$dir/store/log/s.jsonl"
	ag2-ask -n -c "$dir/agent.yaml" --stream s >"$dir/bodies/$n" || exit
done
session share "$dir"/bodies/*
