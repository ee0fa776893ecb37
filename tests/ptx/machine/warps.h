/* What warps ask of memory (COUNTING): 32 threads in lockstep, those at the least place of the code first,
 * so that they meet again where branches do. Blocks that a device has at a time take turns. */

#define WARP 32
#define SECTOR 32
#define BLOCKS_AT_A_TIME (132 * 8)

/* Of the round that a warp is in: the addresses of its accesses to global memory. */
static struct { uint64_t addresses[WARP]; int count, width, how; } group;

static void count_access(int array, uint64_t address, int width, int shared, int how) {
    if (shared) return;
    const Array *one = launch.arrays + array;
    uint64_t sector = address / SECTOR - one->low / SECTOR;
    group.addresses[group.count++] = address; group.width = width; group.how = how;
    if (how != WRITE) one->touched[0][sector] = 1;
    if (how != READ) one->touched[1][sector] = 1;
}

static void close_group(void) {
    Counts *counts = launch.request->counts;
    uint64_t sectors[WARP]; int distinct = 0;
    for (int i = 0; i < group.count; i++) {
        uint64_t sector = group.addresses[i] / SECTOR; int k = 0;
        while (k < distinct && sectors[k] != sector) k++;
        if (k == distinct) sectors[distinct++] = sector;
    }
    counts->asked[group.how] += (uint64_t)group.count * group.width;
    counts->sectors[group.how] += distinct;
    counts->lanes[group.how] += group.count;
    group.count = 0;
}

/* Threads of a warp that are at the least place do a step. Returns what the warp does next. */
static int step_warp(Thread *warp, int lanes, uint8_t *next) {
    int least = INT32_MAX, waits = 0;
    uint64_t most = 0;
    for (int i = 0; i < lanes; i++) {
        waits += next[i] == WAITS;
        if (next[i] == STOPPED && warp[i].place < least) least = warp[i].place;
    }
    if (least == INT32_MAX) return waits ? WAITS : OVER;
    uint32_t chosen = 0;
    for (int i = 0; i < lanes; i++) if (next[i] == STOPPED && warp[i].place == least) chosen |= 1u << i;
    for (int i = 0; i < lanes; i++) {
        if (!(chosen >> i & 1)) continue;
        warp[i].count = 0;
        next[i] = step(warp + i);
        launch.request->counts->instructions += warp[i].count;
        if (warp[i].count > most) most = warp[i].count;
    }
    launch.request->counts->warp_instructions += most;
    close_group();
    return STOPPED;
}

/* All warps of a block do a step; returns how many are over. */
static uint32_t step_block(Thread *threads, uint8_t *next) {
    uint32_t over = 0, waits = 0, warps = (launch.threads + WARP - 1) / WARP;
    for (uint32_t w = 0; w < warps; w++) {
        int lanes = launch.threads - w * WARP < WARP ? launch.threads - w * WARP : WARP;
        int now = step_warp(threads + w * WARP, lanes, next + w * WARP);
        over += now == OVER; waits += now == WAITS;
    }
    if (waits && waits + over == warps) {
        uint32_t at_barrier = 0;
        for (uint32_t i = 0; i < launch.threads; i++) at_barrier += next[i] == WAITS;
        pass(threads, at_barrier);
        memset(next, STOPPED, launch.threads);
    }
    return over;
}

static void run_in_warps(void) {
    uint64_t room = launch.blocks < BLOCKS_AT_A_TIME ? launch.blocks : BLOCKS_AT_A_TIME;
    Thread *threads = take(sizeof(Thread) * room * launch.threads);
    uint8_t *next = take(room * launch.threads), *is_over = take(room);
    uint32_t warps = (launch.threads + WARP - 1) / WARP;
    for (uint32_t first = 0; first < launch.blocks; first += room) {
        uint32_t count = launch.blocks - first < room ? launch.blocks - first : room, left = count;
        for (uint64_t i = 0; i < (uint64_t)count * launch.threads; i++)
            begin(threads + i, first + i / launch.threads, i % launch.threads, first + i / launch.threads);
        memset(next, STOPPED, (uint64_t)count * launch.threads);
        memset(is_over, 0, count);
        while (left)
            for (uint32_t b = 0; b < count; b++) {
                uint64_t at = (uint64_t)b * launch.threads;
                if (is_over[b] || step_block(threads + at, next + at) < warps) continue;
                is_over[b] = 1; left--;
            }
    }
}

static void sum_touched(void) {
    for (int i = 0; i < launch.array_count; i++)
        for (int k = 0; k < 2; k++) {
            const Array *one = launch.arrays + i;
            for (uint64_t n = 0; n <= one->high / SECTOR - one->low / SECTOR; n++) launch.request->counts->touched[k] += one->touched[k][n];
        }
}
