/* In which order the threads of a grid run. */

#define ACCESS(n) if (launch.mode >= TURNS) { s->place = n; return STOPPED; } case n:;
#ifdef COUNTING
#define LABEL(n) s->place = n; return STOPPED; case n:;
#define COUNT s->count++;
#else
#define LABEL(n)
#define COUNT
#endif
#define BARRIER(n) s->place = n; return WAITS; case n:;

/* Run a thread to its next stop. */
static int step(Thread *s) {
    switch (s->place) {
    case 0:;
CODE
    }
    s->place = -1;
    return OVER;
}

static void begin(Thread *s, uint32_t block, uint32_t thread, uint64_t part) {
    Buffer *buffer = s->buffer;
    memset(s, 0xA5, sizeof *s);
    s->place = 0; s->block = block; s->thread = thread; s->epoch = 0; s->buffer = buffer;
    s->shared = launch.shared + part * SHARED_BYTES;
    if (buffer) { buffer->count = buffer->fresh_count = 0; buffer->is_stale = (int)any(2); }
}

/* All threads of a block are at a barrier: at the same one? Then they go on. */
static void pass(Thread *block, uint32_t at_barrier) {
    int place = -1;
    for (uint32_t i = 0; i < launch.threads; i++) {
        Thread *s = block + i;
        if (s->place < 0) continue;
        if (at_barrier != launch.threads) fault(PARTED, s->place - 1, 0, s);
        if (place >= 0 && place != s->place) fault(TWO_BARRIERS, s->place - 1, 0, s);
        place = s->place; s->epoch++;
        fence(s);
    }
}

/* ---- one after the other (PLAIN, RACES), from barrier to barrier */

static void run_block(Thread *threads) {
    for (;;) {
        uint32_t over = 0;
        for (uint32_t k = 0; k < launch.threads; k++) {
            Thread *s = threads + (launch.backwards ? launch.threads - 1 - k : k);
            over += s->place < 0 || step(s) == OVER;
        }
        if (over == launch.threads) return;
        pass(threads, launch.threads - over);
    }
}

static void run_in_order(void) {
    Thread *threads = take(sizeof(Thread) * (HAS_BARRIERS ? launch.threads : 1));
    for (uint32_t n = 0; n < launch.blocks; n++) {
        uint32_t block = launch.backwards ? launch.blocks - 1 - n : n;
        memset(launch.shared_written, 0, SHARED_BYTES);
        if (launch.shared_visits) memset(launch.shared_visits, 0, SHARED_BYTES * sizeof(Visits));
        for (uint32_t k = 0; k < launch.threads; k++) {
            uint32_t i = launch.backwards ? launch.threads - 1 - k : k;
            begin(threads + (HAS_BARRIERS ? i : 0), block, i, 0);
            if (!HAS_BARRIERS) step(threads);
        }
        if (HAS_BARRIERS) run_block(threads);
    }
}

/* ---- in turns (TURNS, WEAK): any thread of any block, for one access or some */

static void run_in_turns(void) {
    uint64_t all = (uint64_t)launch.blocks * launch.threads, count = all;
    Thread *threads = take(sizeof(Thread) * all);
    uint64_t *ready = take(8 * all);
    uint32_t *waiting = take(4 * launch.blocks), *over = take(4 * launch.blocks);
    Buffer *buffers = launch.mode == WEAK ? take(sizeof(Buffer) * all) : 0;
    for (uint64_t i = 0; i < all; i++) {
        threads[i].buffer = buffers ? buffers + i : 0;
        begin(threads + i, i / launch.threads, i % launch.threads, i / launch.threads);
        ready[i] = i;
    }
    while (count) {
        uint64_t k = any(count), i = ready[k], turns = any(3) ? 1 : 1 + any(40);
        uint32_t block = i / launch.threads;
        Thread *s = threads + i;
        int next = s->place < 0 ? OVER : STOPPED;
        if (next == STOPPED) {
            while (turns-- && next == STOPPED) next = step(s);
            over[block] += next == OVER;
        }
        if (buffers && next != WAITS && s->buffer->count && !any(4)) let_go(s, any(s->buffer->count));
        if (next == STOPPED || (buffers && next == OVER && s->buffer->count)) continue;  /* its stores still come */
        ready[k] = ready[--count];
        waiting[block] += next == WAITS;
        if (waiting[block] && waiting[block] + over[block] == launch.threads) {
            Thread *first = threads + (uint64_t)block * launch.threads;
            pass(first, waiting[block]);
            for (uint32_t j = 0; j < launch.threads; j++) ready[count++] = block * (uint64_t)launch.threads + j;
            waiting[block] = 0;
        }
    }
}

/* ---- a launch */

#ifdef COUNTING
static void run_in_warps(void);
static void sum_touched(void);
#else
#define run_in_warps() abort()
#define sum_touched()
#endif

static void add_array(const Given *given) {
    Array *one = launch.arrays + launch.array_count;
    *one = (Array){given->low, given->low + given->items * given->width, given->width, given->written};
    for (const Array *other = launch.arrays; other < one; other++) launch.overlap |= other->low < one->high && one->low < other->high;
    launch.array_count++;
}

static void prepare(void) {
    uint64_t parts = launch.mode >= TURNS ? launch.blocks : 1, items = 0, bytes = 0;
    for (int i = 0; i < launch.array_count; i++) {
        items += (launch.arrays[i].high - launch.arrays[i].low) / launch.arrays[i].width;
        bytes += launch.arrays[i].high - launch.arrays[i].low;
    }
    uint8_t *shared = take(parts * SHARED_BYTES + 16);
    launch.shared = (uint8_t *)(((uint64_t)shared + 15) & ~15ull);
    launch.shared_written = take(parts * SHARED_BYTES);
    launch.shared_visits = launch.mode == RACES ? take(SHARED_BYTES * sizeof(Visits)) : 0;
    Visits *visits = launch.mode == RACES ? take(items * sizeof(Visits)) : 0;
    uint8_t *before = launch.mode == WEAK ? take(bytes) : 0;
    for (int i = 0; i < launch.array_count; i++) {
        Array *one = launch.arrays + i;
        uint64_t size = one->high - one->low, sectors = (one->high >> 5) - (one->low >> 5) + 1;
        if (launch.mode == WARPS) { one->touched[0] = take(sectors); one->touched[1] = take(sectors); }
        if (visits) { one->visits = visits; visits += size / one->width; }
        if (before) { one->before = before; memcpy(before, (void *)one->low, size); before += size; }
    }
}

/* Run a grid. Returns 1 if a fault ended it. */
int run(Request *request) {
    memset(&launch, 0, sizeof launch);
    launch.threads = request->threads; launch.blocks = request->blocks; launch.mode = request->mode;
    launch.backwards = request->backwards; launch.parameters = request->parameters; launch.request = request;
    chance = (request->seed + 1) * 0x9E3779B97F4A7C15ull;
    for (int i = 0; i < 8; i++) any(2);
    for (uint64_t i = 0; i < request->given_count; i++) add_array(request->given + i);
    int failed = setjmp(launch.out);
    if (!failed) {
        prepare();
        if (launch.mode == WARPS) { run_in_warps(); sum_touched(); }
        else if (launch.mode >= TURNS) run_in_turns(); else run_in_order();
    }
    while (launch.memory_count) free(launch.memory[--launch.memory_count]);
    return failed;
}
