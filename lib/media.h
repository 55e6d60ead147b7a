/* What files hold: media types, by their first bytes and by their names. */
#ifndef AG2_MEDIA_H
#define AG2_MEDIA_H

#include <stdbool.h>
#include <stddef.h>

/* By the suffix of a file's name or URL (what follows ? or # is none of it). NULL when it says nothing. */
const char *media_by_name(const char *name);

/*
 * By the content, which is the whole file; the name decides where that leaves a choice, such as between kinds of text.
 * UTF-8 without NUL is text; what nothing is known of is application/octet-stream.
 */
const char *media_of(const char *name, const void *data, size_t len);

/* AG2's kind: image, audio, video; document for PDF and text; binary for the rest. */
const char *media_kind(const char *media_type);

/* A document, sheet or presentation of an office program. */
bool media_is_office(const char *media_type);

#endif
