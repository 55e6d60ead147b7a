# ag2: memory and context for LLM agents. `make`, `make check`, `make install`; a build directory for each flavour:
# `make BUILD=build/clang CC=clang`. A new .c file in cmd/, lib/*/, tests/unit/ or tests/tools/ needs no line here.
VERSION  = 0.1.0
PREFIX   = /usr/local
BINDIR   = $(PREFIX)/bin
MANDIR   = $(PREFIX)/share/man
DATADIR  = $(PREFIX)/share
DESTDIR  =
CC      ?= cc
BUILD    = build/release
ifeq ($(strip $(BUILD)),)
$(error BUILD names no directory)
endif
CFLAGS   = -O2 -g
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2 -Wno-unused-parameter -Wno-missing-field-initializers
HARDEN   = -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -fstack-clash-protection
LINKHARD = -pie -Wl,-z,relro,-z,now
ALL_CFLAGS = -std=gnu11 $(CFLAGS) $(WARN) $(HARDEN) -D_GNU_SOURCE -Ilib -DAG2_VERSION='"$(VERSION)"' $(JSON_CFLAGS)

# A library is linked statically where its archive is there (a start is then twice as fast), libcurl never.
static   = $(or $(wildcard $(shell $(CC) -print-file-name=lib$(1).a)),-l$(1))
JSON_CFLAGS := $(shell pkg-config --cflags json-c 2>/dev/null)
# TLS to a Redis server, where hiredis has it; see lib/store/redis_tls.h.
shared = $(notdir $(realpath $(shell $(CC) -print-file-name=lib$(1).so)))
ifneq ($(shell pkg-config --exists hiredis_ssl 2>/dev/null && echo yes),)
ALL_CFLAGS += -DAG2_HIREDIS='"$(call shared,hiredis)"' -DAG2_HIREDIS_SSL='"$(call shared,hiredis_ssl)"'
endif
LIBS_BASE   = $(call static,json-c) $(call static,yaml) $(call static,sqlite3) $(call static,hiredis) -lm -lpthread -ldl
# The loader looks each symbol up in one library after the other: libcrypto, which has half of all those that libcurl brings, is first
# where libcurl needs it.
crypto = $(shell objdump -p $(realpath $(shell $(CC) -print-file-name=libcurl.so)) 2>/dev/null | sed -n 's/^ *NEEDED *\(libcrypto\.so.*\)/-l:\1/p')
LIBS_ag2-ask := -Wl,--push-state,--no-as-needed $(crypto) -Wl,--pop-state -lcurl
# The tests' HTTP server speaks TLS where there is a library for it.
LIBS_httpd  := $(shell pkg-config --libs openssl 2>/dev/null)
$(BUILD)/tests/tools/httpd.o: ALL_CFLAGS += $(if $(LIBS_httpd),-DWITH_TLS)
LINK     = $(CC) $(CFLAGS) $(LINKHARD) -Wl,--as-needed $(LDFLAGS)

PROGRAMS = $(notdir $(basename $(wildcard cmd/ag2-*.c)))
LIB_SRC  = $(wildcard lib/*.c lib/*/*.c)
CLI_SRC  = $(filter-out $(PROGRAMS:%=cmd/%.c),$(wildcard cmd/*.c))
LIB_OBJ  = $(LIB_SRC:%.c=$(BUILD)/%.o)
CLI_OBJ  = $(CLI_SRC:%.c=$(BUILD)/%.o)
UNIT     = $(patsubst tests/unit/%.c,$(BUILD)/unit/%,$(wildcard tests/unit/*.c))
TOOLS    = $(patsubst tests/tools/%.c,$(BUILD)/tools/%,$(wildcard tests/tools/*.c))
SHIMS    = $(patsubst tests/tools/preload/%.c,$(BUILD)/tools/%.so,$(wildcard tests/tools/preload/*.c))
MAN      = $(wildcard man/*.[1-9])

all: $(PROGRAMS:%=$(BUILD)/bin/%)

$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(ALL_CFLAGS) -MMD -MP -MT '$$(BUILD)/$*.o' -c -o $@ $<

$(BUILD)/libag2.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/bin/%: $(BUILD)/cmd/%.o $(CLI_OBJ) $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_$*) $(LIBS_BASE)

# What only one program needs, ag2-NAME, is in cmd/NAME/.
$(foreach p,$(PROGRAMS),$(eval $(BUILD)/bin/$(p): $(patsubst %.c,$(BUILD)/%.o,$(wildcard cmd/$(p:ag2-%=%)/*.c))))

$(BUILD)/unit/%: $(BUILD)/tests/unit/%.o $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS_BASE) -lcurl

# What several tools share.
TOOL_SRC = $(wildcard tests/tools/lib/*.c)
$(BUILD)/libtools.a: $(TOOL_SRC:%.c=$(BUILD)/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/tools/%: $(BUILD)/tests/tools/%.o $(BUILD)/libtools.a $(BUILD)/libag2.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS_$*) $(LIBS_BASE)

# Preloaded into a program: without the sanitizers, which the program has.
$(BUILD)/tools/%.so: tests/tools/preload/%.c $(wildcard tests/tools/preload/*.h) Makefile
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g $(WARN) -D_GNU_SOURCE -fPIC -shared -o $@ $< -ldl

tests: all $(UNIT) $(TOOLS) $(SHIMS)

check: tests
	AG2_BUILD=$(BUILD) sh tests/run

# -Og and no fortify: the sanitizers see more, and bats runs the same tests.
ASAN     = BUILD=build/asan HARDEN= LINKHARD= \
	CFLAGS='-Og -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer'
tests-asan:
	$(MAKE) tests $(ASAN)
check-asan:
	$(MAKE) check $(ASAN)

# What check does in steps: deaths at every system call, two hundred turns, the loss of power at every moment, and SOAK_OPS changes
# to every store by writers that are killed. `make soak ONLY=store-soak`: one part of it.
SOAK_OPS = 100000
soak: tests
	SOAK=1 SOAK_OPS=$(SOAK_OPS) AG2_TEST_TIMEOUT=3600 AG2_BUILD=$(BUILD) sh tests/run $(ONLY)

lint: lint-man lint-sh
lint-man:
	mandoc -Tlint -Wwarning $(MAN)
lint-sh:
	shellcheck scripts/check scripts/demo scripts/deps scripts/examples/document-chat $(wildcard scripts/examples/own/*) tests/run tests/bench tests/tools/warm.sh .ci/run

bench: all $(TOOLS)
	AG2_BUILD=$(BUILD) sh tests/bench

# $(call completions,PROGRAM) are the files of its completion, which the program itself prints.
completions = $(DESTDIR)$(DATADIR)/bash-completion/completions/$(1) $(DESTDIR)$(DATADIR)/zsh/site-functions/_$(1) \
	$(DESTDIR)$(DATADIR)/fish/vendor_completions.d/$(1).fish

# $(call section,FILE) is the directory of a page.
section  = $(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(1)))

install: all
	install -d $(DESTDIR)$(BINDIR)
	install -m 755 $(PROGRAMS:%=$(BUILD)/bin/%) $(DESTDIR)$(BINDIR)
	$(foreach page,$(MAN),install -D -m 644 -t $(call section,$(page)) $(page) &&) :
	install -d $(dir $(call completions,x))
	for p in $(PROGRAMS); do \
		$(BUILD)/bin/$$p --completion=bash >$(DESTDIR)$(DATADIR)/bash-completion/completions/$$p && \
		$(BUILD)/bin/$$p --completion=zsh >$(DESTDIR)$(DATADIR)/zsh/site-functions/_$$p && \
		$(BUILD)/bin/$$p --completion=fish >$(DESTDIR)$(DATADIR)/fish/vendor_completions.d/$$p.fish || exit 1; \
	done

uninstall:
	rm -f $(PROGRAMS:%=$(DESTDIR)$(BINDIR)/%) $(foreach p,$(PROGRAMS),$(call completions,$(p))) $(foreach page,$(MAN),$(call section,$(page))/$(notdir $(page)))

clean:
	rm -rf build

.PHONY: all tests tests-asan check check-asan soak lint lint-man lint-sh bench install uninstall clean
.PRECIOUS: $(BUILD)/%.o
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
