/*
 * A page of a file, mapped shared: reading and writing it costs no system call. What a file is mapped for can be taken from
 * under it: another process cuts the file short, or the disk has no room or fails. That is a SIGBUS, which a handler that is
 * set with the first page answers with zeros in the page's place; who used the page asks page_lost then, and does with
 * read and write what is to be done. Any other SIGBUS goes where it went before.
 */
#ifndef AG2_PAGE_H
#define AG2_PAGE_H

#include <stdbool.h>
#include <stddef.h>

void *page_map(int fd, size_t len);	/* the first len bytes of the file; NULL where that is not possible, or too many are mapped */
bool page_lost(const void *page);	/* what was read since it was mapped may be zeros, what was written may be nowhere */
void page_unmap(void *page);		/* NULL is fine */

#endif
