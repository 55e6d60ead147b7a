/* The files of --image and --file. */
#ifndef AG2_ASK_ATTACH_H
#define AG2_ASK_ATTACH_H

#include "event/build.h"

#define ATTACH_MAX (32u << 20)	/* bytes of all files of a request */

/*
 * Reads them, images first; "-" is standard input. Returns *n files, to be freed by attach_free. On failure the program
 * ends: 66 for a file that is not there, 65 when all are more than ATTACH_MAX, one is empty, or one of `images` is no image.
 */
struct media *attach_read(const char *const *images, size_t images_n, const char *const *files, size_t files_n, size_t *n);
void attach_free(struct media *m, size_t n);

#endif
