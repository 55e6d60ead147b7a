# Loaded after helper by tests of ag2-ask over TLS.
#
# tls_certificates makes a certification authority, once for each test file, and what it signed, in $CERTS: ca.pem; good.pem
# for 127.0.0.1 and localhost, old.pem that has expired, elsewhere.pem for another host (each with its key); client.pem, its key
# client.key, and the same locked by the words in client.pass; stranger.pem, which nobody signed.

# over_tls: in a test file called *-tls.bats, TLS are options of httpd and SCHEME is https; else none, and http.
over_tls() {
	TLS=() SCHEME=http
	case $BATS_TEST_FILENAME in
	*-tls.bats)
		tls_certificates || return
		export SSL_CERT_FILE=$CERTS/ca.pem
		TLS=(-c "$CERTS/good.pem") SCHEME=https
		;;
	esac
}

tls_certificates() {
	"$TOOLS/httpd" -V || skip "the tests' server was built without TLS"
	CERTS=$BATS_FILE_TMPDIR/certs
	[ ! -e "$CERTS/done" ] || return 0
	mkdir -p "$CERTS"
	(
		cd "$CERTS" || exit 1
		new_key='-newkey ec -pkeyopt ec_paramgen_curve:P-256'
		# shellcheck disable=SC2086
		openssl req -x509 $new_key -nodes -keyout ca.key -out ca.pem -subj '/CN=Test CA' -days 2
		# shellcheck disable=SC2086
		openssl req -x509 $new_key -nodes -keyout stranger.key -out stranger.pem -subj '/CN=Nobody' -days 2
		cat stranger.key >>stranger.pem
		sign good 'IP:127.0.0.1,DNS:localhost' 2
		sign old IP:127.0.0.1 -1
		sign elsewhere DNS:elsewhere.example 2
		sign client DNS:client 2
		openssl x509 -in client.pem -out client.crt
		echo 'open sesame' >client.pass
		openssl pkcs8 -topk8 -in client.key -passout file:client.pass -out locked.key
		: >done
	) >"$CERTS.log" 2>&1
	[ -e "$CERTS/done" ] || fail "no certificates:" "$(cat "$CERTS.log")"
}

# sign NAME SUBJECT-ALT-NAME DAYS
sign() {
	# shellcheck disable=SC2086
	openssl req $new_key -nodes -keyout "$1.key" -out "$1.csr" -subj "/CN=$1"
	echo "subjectAltName=$2" >"$1.ext"
	openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days "$3" -extfile "$1.ext" -out "$1.pem"
	cat "$1.key" >>"$1.pem"
}
