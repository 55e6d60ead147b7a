/* Asking who is at the terminal. */
#ifndef AG2_ASK_CONFIRM_H
#define AG2_ASK_CONFIRM_H

#include "tool.h"

/* Without a terminal the program ends (78). */
void open_terminal(void);
/* Whether this call may run. */
bool confirmed(const struct call *call);

#endif
