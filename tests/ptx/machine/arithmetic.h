/* Instructions of PTX that C has in another way. What PTX leaves undefined is a pattern. */

static inline double as_double(uint64_t bits) { double value; memcpy(&value, &bits, 8); return value; }
static inline uint64_t as_bits(double value) { uint64_t bits; memcpy(&bits, &value, 8); return bits; }

#define UNDEFINED 0xA5A5A5A5A5A5A5A5ull

static inline uint64_t div_u64(uint64_t a, uint64_t b) { return b ? a / b : UNDEFINED; }
static inline uint64_t rem_u64(uint64_t a, uint64_t b) { return b ? a % b : UNDEFINED; }
static inline uint32_t div_u32(uint32_t a, uint32_t b) { return b ? a / b : (uint32_t)UNDEFINED; }
static inline uint32_t rem_u32(uint32_t a, uint32_t b) { return b ? a % b : (uint32_t)UNDEFINED; }

/* By -1: the least integer has no opposite, and wraps around. */
static inline int64_t div_s64(int64_t a, int64_t b) {
    if (!b) return (int64_t)UNDEFINED;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t rem_s64(int64_t a, int64_t b) {
    if (!b) return (int64_t)UNDEFINED;
    return b == -1 ? 0 : a % b;
}
static inline int32_t div_s32(int32_t a, int32_t b) {
    if (!b) return (int32_t)UNDEFINED;
    return b == -1 ? (int32_t)(0 - (uint32_t)a) : a / b;
}
static inline int32_t rem_s32(int32_t a, int32_t b) {
    if (!b) return (int32_t)UNDEFINED;
    return b == -1 ? 0 : a % b;
}

/* cvt.rzi.s64.f64: the nearest integer that there is; NaN is the least (as NVIDIA's devices have it). */
static inline int64_t to_integer(double value) {
    if (isnan(value)) return INT64_MIN;
    if (value >= 9223372036854775808.0) return INT64_MAX;
    return value <= -9223372036854775808.0 ? INT64_MIN : (int64_t)value;
}
