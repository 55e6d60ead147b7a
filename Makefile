# ag2: memory and context for LLM agents. `make`, `make check`, `make install`.
VERSION  = 0.1.0
PREFIX   = /usr/local
DESTDIR  =
CC      ?= cc
BUILD    = build/release
CFLAGS   = -O2 -g
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2 -Wno-unused-parameter
HARDEN   = -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -fstack-clash-protection
LINKHARD = -pie -Wl,-z,relro,-z,now
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(HARDEN) -D_GNU_SOURCE -Ilib -DAG2_VERSION='"$(VERSION)"' $(JSON_CFLAGS)

# A library is linked statically where its archive is there (a start is then twice as fast), libcurl never.
static   = $(or $(wildcard $(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
JSON_CFLAGS := $(shell pkg-config --cflags json-c 2>/dev/null)
LIBS_BASE   = $(call static,json-c) $(call static,yaml) $(call static,sqlite3) $(call static,hiredis) -lm -lpthread -ldl
LIBS_ag2-ask = -lcurl

PROGRAMS = $(notdir $(basename $(wildcard cmd/ag2-*.c)))
LIB_SRC  = $(wildcard lib/*.c lib/*/*.c)
CLI_SRC  = $(filter-out $(PROGRAMS:%=cmd/%.c),$(wildcard cmd/*.c))
LIB_OBJ  = $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ  = $(CLI_SRC:%.c=$(BUILD)/%.o)
UNIT     = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))
TOOLS    = $(patsubst tests/tools/%.c,$(BUILD)/tools/%,$(wildcard tests/tools/*.c))

all: $(PROGRAMS:%=$(BUILD)/bin/%)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libag2.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/bin/%: $(BUILD)/cmd/%.o $(CLI_OBJ) $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LINKHARD) $(LDFLAGS) -o $@ $^ $(LIBS_BASE) $(LIBS_$*)

$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LINKHARD) $(LDFLAGS) -o $@ $^ $(LIBS_BASE) -lcurl

$(BUILD)/tools/%: $(BUILD)/tests/tools/%.o $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LINKHARD) $(LDFLAGS) -o $@ $^ $(LIBS_BASE) -lpthread

check: all $(UNIT) $(TOOLS)
	AG2_BUILD=$(BUILD) sh tests/run

# -Og and no fortify: the sanitizers see more, and bats runs the same tests.
check-asan:
	$(MAKE) check BUILD=build/asan HARDEN= LINKHARD= CFLAGS='-Og -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'

lint:
	mandoc -Tlint -Wwarning man/*.[157]
	shellcheck -s sh scripts/* tests/run
	shellcheck -s bash .ci/run

bench: all $(TOOLS)
	AG2_BUILD=$(BUILD) sh tests/bench

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(PROGRAMS:%=$(BUILD)/bin/%) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(PROGRAMS:%=man/%.1) $(DESTDIR)$(PREFIX)/share/man/man1

uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/bin/%) $(PROGRAMS:%=$(DESTDIR)$(PREFIX)/share/man/man1/%.1)

clean:
	rm -rf build

.PHONY: all check check-asan lint bench install uninstall clean
.SECONDARY:
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
