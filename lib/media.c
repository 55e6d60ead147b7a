#include "media.h"

#include "base/utf8.h"

#include <string.h>
#include <strings.h>

#define OOXML "application/vnd.openxmlformats-officedocument."
#define ODF "application/vnd.oasis.opendocument."

const char *
media_by_name(const char *name)
{
	static const char *const types[][2] = {
		{ "jpg", "image/jpeg" }, { "jpeg", "image/jpeg" }, { "png", "image/png" }, { "gif", "image/gif" }, { "webp", "image/webp" },
		{ "wav", "audio/wav" }, { "mp3", "audio/mpeg" }, { "ogg", "audio/ogg" }, { "flac", "audio/flac" }, { "aac", "audio/aac" },
		{ "aiff", "audio/aiff" }, { "aif", "audio/aiff" }, { "mp4", "video/mp4" }, { "webm", "video/webm" },
		{ "mov", "video/quicktime" }, { "mkv", "video/x-matroska" }, { "mpeg", "video/mpeg" }, { "mpg", "video/mpeg" },
		{ "flv", "video/x-flv" }, { "wmv", "video/x-ms-wmv" }, { "3gp", "video/3gpp" }, { "pdf", "application/pdf" },
		{ "txt", "text/plain" }, { "html", "text/html" }, { "csv", "text/csv" }, { "json", "application/json" }, { "xml", "text/xml" },
		{ "md", "text/markdown" }, { "tsv", "text/tab-separated-values" },
		{ "docx", OOXML "wordprocessingml.document" }, { "xlsx", OOXML "spreadsheetml.sheet" }, { "pptx", OOXML "presentationml.presentation" },
		{ "odt", ODF "text" }, { "ods", ODF "spreadsheet" }, { "odp", ODF "presentation" }, { "doc", "application/msword" },
		{ "xls", "application/vnd.ms-excel" }, { "ppt", "application/vnd.ms-powerpoint" },
	};
	size_t len = strcspn(name, "?#"), i, n;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		n = strlen(types[i][0]);
		if (len > n && name[len - n - 1] == '.' && strncasecmp(name + len - n, types[i][0], n) == 0)
			return types[i][1];
	}
	return NULL;
}

/* Bytes that a file of a type begins with, and further ones at `at`. */
static const struct signature {
	const char *start;
	size_t start_len, at;
	const char *more, *type;
} signatures[] = {
	{ "\x89PNG\r\n\x1a\n", 8, 0, "", "image/png" },
	{ "\xff\xd8\xff", 3, 0, "", "image/jpeg" },
	{ "GIF8", 4, 0, "", "image/gif" },
	{ "RIFF", 4, 8, "WEBP", "image/webp" },
	{ "RIFF", 4, 8, "WAVE", "audio/wav" },
	{ "FORM", 4, 8, "AIF", "audio/aiff" },
	{ "%PDF-", 5, 0, "", "application/pdf" },
	{ "ID3", 3, 0, "", "audio/mpeg" },
	{ "\xff\xfb", 2, 0, "", "audio/mpeg" },
	{ "\xff\xf3", 2, 0, "", "audio/mpeg" },
	{ "\xff\xf2", 2, 0, "", "audio/mpeg" },
	{ "\xff\xf1", 2, 0, "", "audio/aac" },
	{ "fLaC", 4, 0, "", "audio/flac" },
	{ "OggS", 4, 0, "", "audio/ogg" },
	{ "", 0, 4, "ftypM4A", "audio/mp4" },
	{ "", 0, 4, "ftypheic", "image/heic" },
	{ "", 0, 4, "ftypmif1", "image/heif" },
	{ "", 0, 4, "ftypavif", "image/avif" },
	{ "", 0, 4, "ftypqt", "video/quicktime" },
	{ "", 0, 4, "ftyp3gp", "video/3gpp" },
	{ "", 0, 4, "ftyp", "video/mp4" },
	{ "\x1a\x45\xdf\xa3", 4, 0, "", "video/webm" },
	{ "FLV\x01", 4, 0, "", "video/x-flv" },
};

static const char *
media_by_start(const char *data, size_t len)
{
	const struct signature *s, *end = signatures + sizeof(signatures) / sizeof(signatures[0]);
	size_t more;

	for (s = signatures; s < end; s++) {
		more = strlen(s->more);
		if (len >= s->start_len && memcmp(data, s->start, s->start_len) == 0 &&
		    len >= s->at + more && memcmp(data + s->at, s->more, more) == 0)
			return s->type;
	}
	return NULL;
}

/* Office files are archives, of two kinds, and only their names tell whose. */
static bool
is_archive_of(const char *type, const char *data, size_t len)
{
	const char *start = strncmp(type, OOXML, strlen(OOXML)) == 0 || strncmp(type, ODF, strlen(ODF)) == 0 ? "PK\x03\x04" : "\xd0\xcf\x11\xe0";

	return len >= 4 && memcmp(data, start, 4) == 0;
}

bool
media_is_office(const char *media_type)
{
	return strncmp(media_type, "application/vnd.", 16) == 0 || strcmp(media_type, "application/msword") == 0;
}

const char *
media_of(const char *name, const void *data, size_t len)
{
	const char *type = media_by_start(data, len), *named = media_by_name(name);

	if (type != NULL && strcmp(type, "video/webm") == 0 && named != NULL && strcmp(named, "video/x-matroska") == 0)
		return named;
	if (type != NULL)
		return type;
	if (utf8_valid(data, len) == len && memchr(data, '\0', len) == NULL)
		return named != NULL && strncmp(named, "text/", 5) == 0 ? named : "text/plain";
	if (named != NULL && media_is_office(named) && !is_archive_of(named, data, len))
		named = NULL;
	return named != NULL && strncmp(named, "text/", 5) != 0 ? named : "application/octet-stream";
}

const char *
media_kind(const char *media_type)
{
	static const char *const kinds[] = { "image", "audio", "video" };
	size_t i, n;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		n = strlen(kinds[i]);
		if (strncmp(media_type, kinds[i], n) == 0 && media_type[n] == '/')
			return kinds[i];
	}
	return strcmp(media_type, "application/pdf") == 0 || strncmp(media_type, "text/", 5) == 0 ? "document" : "binary";
}
