# Files that go with a request: --image and --file.

load helper
load scripted

setup() {
	clean_environment
	model_init
	export AG2_STORE=disk:$TMP/st
	printf '\211PNG\r\n\032\n\0\0\0\rIHDR' >a.png
	printf '%%PDF-1.4' >d.pdf
	printf 'ID3\003\0\377' >s.mp3
	printf '\0\001\377' >x.bin
	printf 'Two lines\nof notes\n' >notes.md
}

# body PROVIDER ARG...: the request's body.
body() {
	local provider=$1
	shift
	ag2-ask -n -m "$provider:m" "$@" </dev/null
}

# Beginnings of files of office programs.
office() {
	for f in w.docx s.xlsx p.pptx t.odt t.ods t.odp; do printf 'PK\003\004\024\0\377' >$f; done
	for f in w.doc s.xls p.ppt; do printf '\320\317\021\340\241\261\032\341' >$f; done
}

# refused PROVIDER WHAT ARG...: 65, naming the part and the provider.
refused() {
	local provider=$1 what=$2
	shift 2
	run body "$provider" "$@" hi
	status_is 65
	output_is "ag2-ask: ModelRequest: $what cannot be sent to $provider"
}

@test "an image stands behind the text, each provider's way" {
	data=$(base64 -w0 a.png)
	[ "$(body openai --image a.png hi | jq -c '.messages[0].content')" = \
		'[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,'"$data"'"}}]' ]
	[ "$(body openai-responses --image a.png hi | jq -r '.input[0].content[1].image_url')" = "data:image/png;base64,$data" ]
	[ "$(body anthropic --image a.png hi | jq -c '.messages[0].content[1]')" = \
		'{"type":"image","source":{"type":"base64","media_type":"image/png","data":"'"$data"'"}}' ]
	[ "$(body gemini --image a.png hi | jq -c '.contents[0].parts[1].inlineData')" = '{"mimeType":"image/png","data":"'"$data"'"}' ]
	[ "$(body ollama --image a.png hi | jq -c '.messages[0]')" = '{"role":"user","content":"hi","images":["'"$data"'"]}' ]
}

@test "what a provider cannot take is 65, naming the part and the provider" {
	refused openai 'BinaryInput(binary)' --file x.bin
	refused openai-responses 'BinaryInput(audio)' --file s.mp3
	refused anthropic 'BinaryInput(audio)' --file a.png --file s.mp3
	refused ollama 'BinaryInput(document)' --file d.pdf
	office
	for f in w.docx s.xlsx p.pptx t.odt w.doc s.xls; do
		for to in openai anthropic gemini ollama; do
			refused $to 'BinaryInput(binary)' --file $f
		done
	done
}

@test "files of office programs go to openai-responses, which reads them, with their types and names" {
	office
	while read -r f type; do
		body openai-responses --file $f hi | jq -r '.input[0].content[1] | "\(.type) \(.filename) \(.file_data | split(",")[0])"' >got
		[ "$(cat got)" = "input_file $f data:$type;base64" ] || fail "$(cat got)"
	done <<-END
		w.docx application/vnd.openxmlformats-officedocument.wordprocessingml.document
		s.xlsx application/vnd.openxmlformats-officedocument.spreadsheetml.sheet
		p.pptx application/vnd.openxmlformats-officedocument.presentationml.presentation
		t.odt application/vnd.oasis.opendocument.text
		t.ods application/vnd.oasis.opendocument.spreadsheet
		t.odp application/vnd.oasis.opendocument.presentation
		w.doc application/msword
		s.xls application/vnd.ms-excel
		p.ppt application/vnd.ms-powerpoint
	END
	# sheets that are text are text
	printf 'a\tb\n' >t.tsv
	[ "$(body openai-responses --file t.tsv hi | jq -r '.input[0].content[1].file_data')" = "data:text/tab-separated-values;base64,YQliCg==" ]
	# what only bears such a name is none
	cp x.bin x.docx
	refused openai-responses 'BinaryInput(binary)' --file x.docx
}

@test "a request that the provider cannot take is not logged, so that the stream goes on" {
	run ag2-ask --stream s -m anthropic:m --file s.mp3 hi
	status_is 65
	has "BinaryInput(audio) cannot be sent to anthropic"
	run ag2-store log cat s
	status_is 66
}

@test "a text file is text for providers that take no text documents, and a document for the others" {
	[ "$(body openai --file notes.md hi | jq -c '.messages[0].content[1]')" = '{"type":"text","text":"notes.md:\n\nTwo lines\nof notes\n"}' ]
	[ "$(body ollama --file notes.md hi | jq -r '.messages[0].content')" = $'hi\nnotes.md:\n\nTwo lines\nof notes' ]
	[ "$(body anthropic --file notes.md hi | jq -c '.messages[0].content[1] | [.type, .source.data, .title]')" = \
		'["document","Two lines\nof notes\n","notes.md"]' ]
	[ "$(body openai --as-ag2 --file notes.md hi | jq -r '.messages[0].content[1].file.filename')" = notes.md ]
}

@test "several files, images first, in the order given" {
	printf '\377\330\377' >b.jpg
	[ "$(body openai --file d.pdf --image a.png --image b.jpg --file notes.md hi | jq -c '[.messages[0].content[] |
		.text // .image_url.url // .file.filename | .[:21]]')" = \
		'["hi","data:image/png;base64","data:image/jpeg;base6","d.pdf","notes.md:\n\nTwo lines\n"]' ]
}

@test "the log holds the file as AG2 writes it, and the next turn sends it again" {
	answer_text "a picture"
	answer_text "the same"
	run -0 ag2-ask --stream s -m "$MODEL" --image a.png "What is this?"
	ag2-store log cat s >log
	events_are log ModelRequest ModelResponse
	[ "$(head -n 1 log | jq -c '.data.parts[1] | del(.created_at)')" = '{"__event__":"ag2.events.input_events.BinaryInput","metadata":{},"vendor_metadata":{},"media_type":"image/png","kind":{"__enum__":"ag2.events.input_events.BinaryType","value":"image"},"data":{"__bytes__":"'"$(base64 -w0 a.png)"'"}}' ]
	run -0 ag2-ask --stream s -m "$MODEL" again
	head -n 1 log >want
	head -n 1 "$MODEL_DIR/sent.2" >got
	same want got
}

@test "a file alone is a request, and needs no TEXT" {
	answer_text ok
	run -0 ag2-ask --stream s -m "$MODEL" --file notes.md
	[ "$(ag2-store log cat s | head -n 1 | jq -c '[.data.parts[] | .vendor_metadata.filename]')" = '["notes.md"]' ]
	answer_text ok
	run -0 ag2-ask -m "$MODEL" --file notes.md </dev/null
}

@test "'-' is the file on standard input, once, and not where a stream or TEXT comes from there" {
	answer_text ok
	run -0 ag2-ask --stream s -m "$MODEL" --image - hi <a.png
	[ "$(ag2-store log cat s | head -n 1 | jq -r '.data.parts[1].media_type')" = image/png ]
	for args in "--image - x" "--stream s --image - --file - x" "--stream s --file - -"; do
		run ag2-ask -m "$MODEL" $args <a.png
		status_is 64
		has "'-'"
	done
	[ "$(asked)" -eq 1 ]
}

@test "a file that is not there is 66, a directory 74, an empty one, one that is too big, or no image is 65" {
	: >empty
	truncate -s 33M big
	run ag2-ask -m "$MODEL" --file nowhere x </dev/null
	status_is 66
	has "nowhere"
	run ag2-ask -m "$MODEL" --file . x </dev/null
	status_is 74
	output_is "ag2-ask: cannot read '.': Is a directory"
	run ag2-ask -m "$MODEL" --file empty x </dev/null
	status_is 65
	output_is "ag2-ask: 'empty' is empty"
	run ag2-ask -m "$MODEL" --file a.png --file big x </dev/null
	status_is 65
	output_is "ag2-ask: 'big': the files of a request are more than 32 MB"
	run ag2-ask -m "$MODEL" --image notes.md x </dev/null
	status_is 65
	output_is "ag2-ask: 'notes.md' is no image but text/markdown; --file sends any file"
	[ "$(asked)" -eq 0 ]
}
