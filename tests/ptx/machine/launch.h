/* A launch: what Python asks for, the arrays, what was found, and chance.
 *
 * Included after the kernel's definitions (SHARED_BYTES, SITES, HAS_BARRIERS, REGISTERS, CODE). */

enum { OVER, STOPPED, WAITS };                  /* what a thread does next */
enum { PLAIN, RACES, TURNS, WEAK, WARPS };      /* modes, as kernel.py has them */
enum { READ, WRITE, ATOMIC };                   /* accesses */
enum { OUTSIDE, MISALIGNED, UNWRITTEN, PARTED, TWO_BARRIERS, /* faults, which end a launch */
       RACE_READ_WRITE, RACE_WRITES_DIFFER, RACE_WRITES_SAME, RACE_ATOMIC_READ, RACE_ATOMIC_WRITE };

typedef struct { int32_t kind, site, other, thread, block, unused; uint64_t count, address; } Finding;

/* Of an array among the parameters: address, items, bytes of an item; a byte for each of its bytes,
 * 1 if something wrote it, or null if all is written. */
typedef struct { uint64_t low, items, width; uint8_t *written; } Given;

/* What warps asked of global memory, by kind of access: bytes, sectors, threads; sectors that something
 * read or wrote at all. Instructions of threads, and of warps (of the thread that did most). */
typedef struct { uint64_t instructions, warp_instructions, asked[3], sectors[3], lanes[3], touched[2]; } Counts;

typedef struct {
    uint32_t threads, blocks, mode, backwards; uint64_t seed;
    void **parameters; uint64_t given_count; Given *given;
    uint64_t room, found_count; Finding *found; Counts *counts;
} Request;

/* Who was last at an address: the number of a thread + 1, how many barriers it had passed, where. */
typedef struct { uint32_t thread, epoch; int32_t site; } Visit;
typedef struct { Visit writer, atomic, readers[2]; } Visits;

typedef struct { uint64_t low, high, width; uint8_t *written; Visits *visits; uint8_t *before, *touched[2]; } Array;

typedef struct { uint64_t address, value; int width; } Store;
#define MOST_STORES 48
typedef struct { int count, fresh_count, is_stale; Store stores[MOST_STORES]; uint64_t fresh[MOST_STORES]; } Buffer;

typedef struct {
    int place; uint32_t thread, block, epoch, count; uint8_t *shared; Buffer *buffer;
    REGISTERS
} Thread;

#define MOST_ARRAYS 64
#define MOST_MEMORY (16 + 2 * MOST_ARRAYS)
static struct {
    uint32_t threads, blocks, mode, backwards; void **parameters;
    Array arrays[MOST_ARRAYS]; int array_count, overlap;
    uint8_t *shared, *shared_written; Visits *shared_visits;
    Request *request; void *memory[MOST_MEMORY]; int memory_count; jmp_buf out;
} launch;

/* Memory until the end of the launch, however that ends. */
static void *take(uint64_t size) {
    void *made = calloc(size ? size : 1, 1);
    if (!made || launch.memory_count == MOST_MEMORY) abort();
    return launch.memory[launch.memory_count++] = made;
}

static uint64_t chance;
static inline uint64_t any(uint64_t count) {
    chance ^= chance << 13; chance ^= chance >> 7; chance ^= chance << 17;
    return chance % count;
}

static void note(int kind, int site, int other, uint64_t address, const Thread *s) {
    Request *request = launch.request;
    for (uint64_t i = 0; i < request->found_count; i++) {
        Finding *one = request->found + i;
        if (one->kind == kind && one->site == site && one->other == other) { one->count++; return; }
    }
    if (request->found_count < request->room)
        request->found[request->found_count++] =
            (Finding){kind, site, other, (int)s->thread, (int)s->block, 0, 1, address};
}

static void fault(int kind, int site, uint64_t address, const Thread *s) {
    note(kind, site, site, address, s);
    longjmp(launch.out, 1);
}
