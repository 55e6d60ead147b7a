# Loaded after helper by tests of AG2's results.

# What of a prompt is not prose: what was put in, as JSON.
inserted() {
	jq -Rs '
		def between(a; b): split(a)[1:] | join(a) | split(b)[0];
		if contains("## Current Working Memory\n") then
			{existing: between("## Current Working Memory\n"; "\n\n## New Conversation\n"), events: (split("\n\n## New Conversation\n")[1])}
		elif contains("## The notes as they are\n") then
			{existing: between("## The notes as they are\n"; "\n\n## What is new\n"), events: (split("\n\n## What is new\n")[1])}
		elif test("^(Summarize this|Write a summary)") then {events: (split("\n\n")[1:] | join("\n\n"))}
		else . end' "$1"
}
