/* A library with the C interface of the activity library, whose "device" is a rule that says what record i is.
 *
 * Built by the tests. As the real one it records under one lock, which it holds while it asks for and returns buffers,
 * remembers in a thread-local variable how far a walk has come, and hands a buffer that it was refused back as null.
 * The fake_ functions are the tests' own.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD __attribute__((packed, aligned(8)))
#define KINDS 16
#define LONGER 0x77777777

enum { MARKER = 1, KERNEL, API, HCCL, MEMORY, MEMSET, MEMCPY, CORRELATION, COMMUNICATION, ACL, NODE, RUNTIME, FUTURE };
enum { SUCCESS = 0, INVALID = 1, TAKEN = 2, LIMIT = 3, INNER = 999 };

typedef struct RECORD {
    uint32_t kind, flag, side;
    uint64_t time, id;
    uint32_t first, second;
    const char *name, *domain;
} Marker;
typedef struct RECORD {
    uint32_t kind;
    uint64_t start, end;
    uint32_t process, thread;
    uint64_t correlation;
    const char *name;
} Api;
typedef struct RECORD {
    uint32_t kind;
    uint64_t start, end;
    uint32_t device, stream;
    uint64_t correlation;
    const char *type, *name;
} Kernel;
typedef struct RECORD {
    uint32_t kind;
    uint64_t start, end;
    uint32_t device, stream;
    double bandwidth;
    const char *name, *comm;
} Hccl;
typedef struct RECORD {
    uint32_t kind, operation, memory;
    uint64_t correlation, start, end, address, bytes;
    uint32_t process, device, stream;
} Memory;
typedef struct RECORD {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, stream;
    uint64_t correlation;
    uint8_t asynchronous;
} Move;
typedef struct RECORD {
    uint32_t kind, external;
    uint64_t id, correlation;
} Correlation;
typedef struct RECORD {
    uint32_t kind, type;
    uint64_t count;
    uint32_t device, stream;
    uint64_t start, end;
    const char *algorithm, *name, *comm;
    uint64_t correlation;
} Communication;

static const uint32_t sizes[KINDS] = {
    [MARKER] = sizeof(Marker), [KERNEL] = sizeof(Kernel), [API] = sizeof(Api), [HCCL] = sizeof(Hccl),
    [MEMORY] = sizeof(Memory), [MEMSET] = sizeof(Move), [MEMCPY] = sizeof(Move), [CORRELATION] = sizeof(Correlation),
    [COMMUNICATION] = sizeof(Communication), [ACL] = sizeof(Api), [NODE] = sizeof(Api), [RUNTIME] = sizeof(Api),
    [FUTURE] = 40,
};
_Static_assert(sizeof(Marker) == 56 && sizeof(Api) == 48 && sizeof(Kernel) == 56 && sizeof(Hccl) == 56, "sizes");
_Static_assert(sizeof(Memory) == 64 && sizeof(Move) == 56 && sizeof(Correlation) == 24, "sizes");
_Static_assert(sizeof(Communication) == 72, "sizes");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*ask)(uint8_t **, size_t *, size_t *);
static void (*hand_over)(uint8_t *, size_t, size_t);
static int enabled[KINDS], enable_result[KINDS], subscribe_result, register_result, subscribed, token;
static uint32_t period;
static char off_domain[64];

static uint8_t *buffer;
static size_t room, used;
static int have;
static long requests, dropped, lent, most_lent, misaligned;

static int extra[KINDS];  /* bytes that each record of a kind is longer */
static int varying;            /* every third kernel is 8 bytes longer still; its padding says so */

static uint64_t base = 1700000000000000000ull;  /* when record 0 starts */
static char names[1 << 16][24];
static int named, different = 100;

void fake_reset(void) {
    memset(enabled, 0, sizeof enabled);
    memset(enable_result, 0, sizeof enable_result);
    memset(extra, 0, sizeof extra);
    subscribe_result = register_result = subscribed = varying = 0;
    requests = dropped = lent = most_lent = misaligned = 0;
    off_domain[0] = 0;
    period = 0;
    different = 100;
    buffer = NULL;
    have = 0;
    used = room = 0;
}
void fake_enable_result(int kind, int result) { enable_result[kind] = result; }
void fake_subscribe_result(int result) { subscribe_result = result; }
void fake_register_result(int result) { register_result = result; }
void fake_extra(int kind, int bytes) { extra[kind] = bytes; }
void fake_varying(int on) { varying = on; }
void fake_names(int count) { different = count; }
void fake_base(uint64_t start) { base = start; }
long fake_requests(void) { return requests; }
long fake_dropped(void) { return dropped; }
long fake_most_lent(void) { return most_lent; }
long fake_misaligned(void) { return misaligned; }
int fake_subscribed(void) { return subscribed; }
int fake_enabled(int kind) { return enabled[kind]; }
uint32_t fake_period(void) { return period; }
const char *fake_off_domain(void) { return off_domain; }

int msptiSubscribe(void **subscriber, void *callback, void *data) {
    (void)callback;
    (void)data;
    if (subscribe_result) return subscribe_result;
    if (subscribed) return TAKEN;
    subscribed = 1;
    *subscriber = &token;
    return SUCCESS;
}
int msptiUnsubscribe(void *subscriber) {
    if (subscriber != &token) return INVALID;
    subscribed = 0;
    return SUCCESS;
}
int msptiActivityRegisterCallbacks(void *request, void *completed) {
    if (register_result) return register_result;
    ask = (void (*)(uint8_t **, size_t *, size_t *))request;
    hand_over = (void (*)(uint8_t *, size_t, size_t))completed;
    return SUCCESS;
}
int msptiActivityEnable(uint32_t kind) {
    if (kind >= KINDS) return INVALID;
    if (enable_result[kind]) return enable_result[kind];
    enabled[kind] = 1;
    return SUCCESS;
}
int msptiActivityDisable(uint32_t kind) {
    enabled[kind] = 0;
    return SUCCESS;
}
int msptiActivityDisableMarkerDomain(const char *name) {
    snprintf(off_domain, sizeof off_domain, "%s", name);
    return SUCCESS;
}
int msptiActivityEnableMarkerDomain(const char *name) {
    (void)name;
    off_domain[0] = 0;
    return SUCCESS;
}
int msptiActivityFlushPeriod(uint32_t milliseconds) {
    period = milliseconds;
    return SUCCESS;
}

static void hand_back(void) {
    if (!have) return;
    if (buffer) lent--;
    hand_over(buffer, room, used);
    have = 0;
}
int msptiActivityFlushAll(uint32_t flag) {
    (void)flag;
    pthread_mutex_lock(&lock);
    hand_back();
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static size_t size_of(const uint8_t *record) {
    uint32_t kind = *(const uint32_t *)record;
    if (kind >= KINDS || !sizes[kind]) return 0;
    int longer = kind == KERNEL && *(const uint32_t *)(record + sizes[kind] - 4) == LONGER;
    return sizes[kind] + extra[kind] + (longer ? 8 : 0);
}
int msptiActivityGetNextRecord(uint8_t *bytes, size_t valid, void **record) {
    static __thread size_t at;
    if (!bytes) return INVALID;
    if (at >= valid) {
        at = 0;
        return LIMIT;
    }
    size_t size = size_of(bytes + at);
    if (!size) return INNER;
    *record = bytes + at;
    at += size;
    return SUCCESS;
}

static void ask_for_one(void) {
    size_t limit = 0;
    requests++;
    buffer = NULL;
    room = 0;
    ask(&buffer, &room, &limit);
    used = 0;
    have = 1;
    if (buffer && ++lent > most_lent) most_lent = lent;
    if ((uintptr_t)buffer % 8) misaligned++;
}
static void record(void *made) {
    uint32_t kind = *(uint32_t *)made;
    if (!enabled[kind]) return;
    size_t plain = sizes[kind], full = plain + extra[kind];
    if (kind == KERNEL) {
        static uint32_t every;
        int longer = varying && ++every % 3 == 0;
        *(uint32_t *)((uint8_t *)made + plain - 4) = longer ? LONGER : 0;
        full += longer ? 8 : 0;
    }
    pthread_mutex_lock(&lock);
    if (!have) {
        ask_for_one();
    } else if (!buffer || used + full > room) {
        hand_back();
        ask_for_one();
    }
    if (buffer) {
        memset(buffer + used, 0x5A, full);
        memcpy(buffer + used, made, full < plain ? full : plain);
        used += full;
    } else {
        dropped++;
    }
    pthread_mutex_unlock(&lock);
}

static const char *name(uint64_t i, int shift) {
    if (!named) {
        for (int n = 0; n < 1 << 16; n++) snprintf(names[n], sizeof names[n], "name_%d", n);
        named = 1;
    }
    return names[(i + shift) % different];
}

/* Record number i of a kind; the tests know the same rule. */
static void emit(int kind, uint64_t i) {
    uint64_t start = base + 1000 * i, end = start + 10 + i % 7;
    uint32_t device = i % 8, stream = i % 5 ? i % 3 : 0xFFFFFFFF, process = 4000000000u + i % 2, thread = 100 + i % 4;
    uint64_t correlation = (1ull << 40) + i;
    switch (kind) {
    case MARKER: {
        int side = i % 2;
        Marker made = {kind, 1u << i % 6, side, start, i / 4, side ? device : process, side ? stream : thread,
                       side ? "" : name(i, 0), i % 3 ? NULL : name(i, 7)};
        record(&made);
        break;
    }
    case API: case ACL: case NODE: case RUNTIME: {
        Api made = {kind, start, end, process, thread, correlation, name(i, kind)};
        record(&made);
        break;
    }
    case KERNEL: {
        Kernel made = {kind, start, end, device, stream, correlation, i % 2 ? "KERNEL_AIVEC" : "KERNEL_AICORE", name(i, 0)};
        record(&made);
        break;
    }
    case HCCL: {
        Hccl made = {kind, start, end, device, stream, 0.5 * i, name(i, 0), name(i, 1)};
        record(&made);
        break;
    }
    case MEMORY: {
        Memory made = {kind, i % 2, 1, correlation, start, end, 0xFFFF800000000000ull + i, 64 * i, process, device, stream};
        record(&made);
        break;
    }
    case MEMSET: case MEMCPY: {
        Move made = {kind, i % 6, 1ull << i % 48, start, end, device, stream, correlation, i % 2};
        record(&made);
        break;
    }
    case COMMUNICATION: {
        Communication made = {kind, i % 2 ? 65535 : 4, 3 * i, device, stream, start, end, "HD", name(i, 0), name(i, 2),
                              correlation};
        record(&made);
        break;
    }
    case CORRELATION: {
        Correlation made = {kind, 2, i, correlation};
        record(&made);
        break;
    }
    case FUTURE: {
        uint32_t made[10] = {kind, 1, 2, 3};
        record(made);
        break;
    }
    }
}

/* Records first..first+count-1, their kinds taken in turn from a list that ends with 0. Any thread may call it. */
void fake_emit(const int *kinds, uint64_t first, uint64_t count) {
    int number = 0;
    while (kinds[number]) number++;
    for (uint64_t i = first; i < first + count; i++) emit(kinds[i % number], i);
}

struct Work {
    int kinds[KINDS];
    uint64_t first, count;
};
static void *work(void *given) {
    struct Work *mine = given;
    fake_emit(mine->kinds, mine->first, mine->count);
    free(mine);
    return NULL;
}
/* The same from a thread of the library's own. */
uint64_t fake_start(const int *kinds, uint64_t first, uint64_t count) {
    struct Work *mine = calloc(1, sizeof *mine);
    for (int i = 0; kinds[i]; i++) mine->kinds[i] = kinds[i];
    mine->first = first;
    mine->count = count;
    pthread_t thread;
    pthread_create(&thread, NULL, work, mine);
    return thread;
}
void fake_join(uint64_t thread) { pthread_join(thread, NULL); }

/* Overwrite what was recorded last with rubbish, or cut bytes off. */
void fake_rubbish(uint64_t bytes, int value) {
    pthread_mutex_lock(&lock);
    if (buffer && bytes <= used) memset(buffer + used - bytes, value, bytes);
    pthread_mutex_unlock(&lock);
}
void fake_cut(uint64_t bytes) {
    pthread_mutex_lock(&lock);
    if (bytes <= used) used -= bytes;
    pthread_mutex_unlock(&lock);
}
/* One kernel whose name lies nowhere. */
void fake_wild(void) {
    Kernel made = {KERNEL, 1, 2, 0, 0, 3, "KERNEL_AICORE", (const char *)0x10};
    record(&made);
}
/* One kernel of a given name. */
void fake_kernel(const char *name) {
    Kernel made = {KERNEL, 1, 2, 0, 0, 3, "KERNEL_AICORE", name};
    record(&made);
}
