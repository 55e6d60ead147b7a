# Summaries depend on logs, answers on questions and on what the summaries say.
#
#   make -j4 -f summaries.mk MODEL=openai:gpt-5-mini
#
# logs/X.jsonl gives summaries/X.md, questions/Y.txt gives answers/Y.md. Only what changed is asked for again. With
# AG2_RECORD=tape and later AG2_REPLAY=tape the same is made without a model.
MODEL     = openai:gpt-5-mini
summaries = $(patsubst logs/%.jsonl,summaries/%.md,$(wildcard logs/*.jsonl))
answers   = $(patsubst questions/%.txt,answers/%.md,$(wildcard questions/*.txt))

all: $(summaries) $(answers)

summaries/%.md: logs/%.jsonl
	@mkdir -p $(@D)
	ag2-aggregate -m '$(MODEL)' conversation-summary <$< >$@

answers/%.md: questions/%.txt $(summaries)
	@mkdir -p $(@D)
	ag2-assemble 'inject:cat $(summaries)' </dev/null | ag2-ask -m '$(MODEL)' "$$(cat $<)" >$@

.DELETE_ON_ERROR:
.PHONY: all
