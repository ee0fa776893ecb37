/* Memory as threads see it: every access is checked, races are noted, stores may be late. */

static inline uint64_t raw(const void *place, int width) { uint64_t v = 0; memcpy(&v, place, width); return v; }

/* ---- checks: within an array, aligned, written before it is read */

static int array_at(int site, uint64_t address, int width) {
    static int last[SITES + 1];  /* an access is mostly to the array that it was to before */
    int n = last[site];
    const Array *one = launch.arrays + n;
    if (!launch.overlap && n < launch.array_count && address >= one->low && address + width <= one->high) return n;
    for (n = 0; n < launch.array_count; n++) {
        one = launch.arrays + n;
        if (address >= one->low && address + width <= one->high) return last[site] = n;
    }
    return -1;
}

static inline int checked(const Thread *s, int site, uint64_t address, int width, int shared) {
    int array = 0;
    if (shared) {
        uint64_t place = address - (uint64_t)s->shared;
        if (place >= SHARED_BYTES || place + width > SHARED_BYTES) array = -1;
    } else array = array_at(site, address, width);
    if (array < 0) fault(OUTSIDE, site, address, s);
    if (address & (width - 1)) fault(MISALIGNED, site, address, s);
    return array;
}

static inline uint8_t *written_at(const Thread *s, int array, uint64_t address, int shared) {
    if (shared) return launch.shared_written + (address - (uint64_t)launch.shared);
    const Array *one = launch.arrays + array; (void)s;
    return one->written ? one->written + (address - one->low) : 0;
}
static inline void check_written(const Thread *s, int site, int array, uint64_t address, int width, int shared) {
    const uint8_t *written = written_at(s, array, address, shared);
    if (written && raw(written, width) != 0x0101010101010101ull >> (64 - 8 * width)) fault(UNWRITTEN, site, address, s);
}
static inline void put(const Thread *s, int array, uint64_t address, uint64_t value, int width, int shared) {
    uint8_t *written = written_at(s, array, address, shared);
    memcpy((void *)address, &value, width);
    if (written) memset(written, 1, width);
}

/* ---- races: two threads at an address, one of them writes, and no barrier is in between
 *
 * Threads run in some order, but what is noted would be in any order. Of readers two are kept: a
 * thread that writes is another than at least one of them. */

static int is_apart(const Thread *s, const Visit *other) {
    uint32_t me = s->block * launch.threads + s->thread + 1;
    if (!other->thread || other->thread == me) return 0;
    return (other->thread - 1) / launch.threads != s->block || other->epoch == s->epoch;
}
static void meet(const Thread *s, int site, const Visit *other, int kind, uint64_t address) {
    if (is_apart(s, other)) note(kind, site, other->site, address, s);
}
static void visit(const Thread *s, int site, int array, uint64_t address, int shared, int how, int same) {
    const Array *one = launch.arrays + array;
    Visits *at = shared ? launch.shared_visits + (address - (uint64_t)launch.shared)
                        : one->visits + (address - one->low) / one->width;
    Visit mine = {s->block * launch.threads + s->thread + 1, s->epoch, site};
    int differ = same ? RACE_WRITES_SAME : RACE_WRITES_DIFFER;
    if (how != WRITE) meet(s, site, &at->writer, how == READ ? RACE_READ_WRITE : RACE_ATOMIC_WRITE, address);
    else meet(s, site, &at->writer, differ, address);
    if (how != ATOMIC) meet(s, site, &at->atomic, how == READ ? RACE_ATOMIC_READ : RACE_ATOMIC_WRITE, address);
    if (how == READ) {
        Visit *first = at->readers;
        at->readers[first->thread != mine.thread && is_apart(s, first)] = mine;
        return;
    }
    for (int i = 0; i < 2; i++) meet(s, site, at->readers + i, how == WRITE ? RACE_READ_WRITE : RACE_ATOMIC_READ, address);
    *(how == WRITE ? &at->writer : &at->atomic) = mine;
}

/* ---- stores that are late (WEAK): they wait in their thread until a fence or a barrier, or till chance
 * lets one go. Some threads see memory as it was when the launch began, but for what they wrote or
 * changed themselves, and until their first fence or barrier. Atomics order nothing else. */

static void let_go(Thread *s, int i) {
    Store one = s->buffer->stores[i];
    int shared = one.address - (uint64_t)s->shared < SHARED_BYTES;
    put(s, shared ? 0 : array_at(SITES, one.address, one.width), one.address, one.value, one.width, shared);
    s->buffer->stores[i] = s->buffer->stores[--s->buffer->count];
}
static void fence(Thread *s) {
    if (launch.mode != WEAK) return;
    while (s->buffer->count) let_go(s, any(s->buffer->count));
    s->buffer->is_stale = 0;
}
static void let_go_at(Thread *s, uint64_t address, int width) {
    Buffer *own = s->buffer;
    for (int i = own->count - 1; i >= 0; i--)
        if (own->stores[i].address < address + width && address < own->stores[i].address + own->stores[i].width) let_go(s, i);
}
static void freshen(Buffer *own, uint64_t address) {
    if (own->fresh_count == MOST_STORES) own->is_stale = 0;
    else own->fresh[own->fresh_count++] = address & ~7ull;
}
static int is_stale(const Buffer *own, uint64_t address) {
    if (!own->is_stale) return 0;
    for (int i = 0; i < own->fresh_count; i++) if (own->fresh[i] == (address & ~7ull)) return 0;
    return 1;
}
static uint64_t load_late(Thread *s, int site, int array, uint64_t address, int width, int shared, int strong) {
    Buffer *own = s->buffer;
    for (int i = 0; i < own->count; i++)
        if (own->stores[i].address == address && own->stores[i].width == width) return own->stores[i].value;
    let_go_at(s, address, width);
    if (strong) freshen(own, address);
    check_written(s, site, array, address, width, shared);
    if (!shared && is_stale(own, address)) return raw(launch.arrays[array].before + (address - launch.arrays[array].low), width);
    return raw((void *)address, width);
}
static void store_late(Thread *s, uint64_t address, int width, uint64_t value, int strong) {
    Buffer *own = s->buffer;
    freshen(own, address);
    let_go_at(s, address, width);
    if (own->count == MOST_STORES) let_go(s, any(MOST_STORES));
    own->stores[own->count++] = (Store){address, width < 8 ? value & ((1ull << (8 * width)) - 1) : value, width};
    if (strong) let_go(s, own->count - 1);
}

/* ---- what warps ask of memory: `warps.h` */

#ifdef COUNTING
static void count_access(int array, uint64_t address, int width, int shared, int how);
#else
#define count_access(...)
#endif

/* ---- what the kernel calls; `strong`: where all threads meet, as atomics are */

static inline uint64_t load(Thread *s, int site, uint64_t address, int width, int shared, int strong) {
    int array = checked(s, site, address, width, shared);
    if (launch.mode == WEAK) return load_late(s, site, array, address, width, shared, strong);
    if (launch.mode == RACES) visit(s, site, array, address, shared, strong ? ATOMIC : READ, 0);
    count_access(array, address, width, shared, READ);
    check_written(s, site, array, address, width, shared);
    return raw((void *)address, width);
}
static inline void store(Thread *s, int site, uint64_t address, int width, uint64_t value, int shared, int strong) {
    int array = checked(s, site, address, width, shared);
    if (launch.mode == WEAK) { store_late(s, address, width, value, strong); return; }
    if (launch.mode == RACES) visit(s, site, array, address, shared, strong ? ATOMIC : WRITE, !memcmp((void *)address, &value, width));
    count_access(array, address, width, shared, WRITE);
    put(s, array, address, value, width, shared);
}
static inline uint64_t begin_atomic(Thread *s, int site, uint64_t address, int width, int shared, uint64_t *at) {
    int array = checked(s, site, address, width, shared);
    if (launch.mode == WEAK) { let_go_at(s, address, width); freshen(s->buffer, address); }
    if (launch.mode == RACES) visit(s, site, array, address, shared, ATOMIC, 0);
    count_access(array, address, width, shared, ATOMIC);
    check_written(s, site, array, address, width, shared);
    *at = address;
    return raw((void *)address, width);
}
static inline void end_atomic(Thread *s, uint64_t at, uint64_t value, int width) { (void)s; memcpy((void *)at, &value, width); }
