// Functions of vectors. A power of two is split off, so that the remainder is small enough for a
// series: Taylor's for exp, up to ln 2 / 2, and for log that of the inverse hyperbolic tangent, up
// to (sqrt 2 - 1) / (sqrt 2 + 1). LN2 comes in two parts, the first with few digits, so that its
// multiples are exact (Cody and Waite).
const auto power_of_two = [=](i32 k) {
    return __builtin_bit_cast(f64, (AS(k, i64) + 1023) << 52);
};
const auto exp_long = [=](f64 x) NOINLINE {
    const f64 near = choose(x < -746.0, (f64)-746.0, choose(x > 710.0, (f64)710.0, x));
    const f64 whole = rint_of(near * LOG2_E), r = (near - whole * LN2) - whole * LN2_REST;
    // two factors of half the exponent each, as 2^k itself may overflow or be subnormal
    const i32 k = AS(choose(x != x, (f64)0.0, whole), i32), half = k >> 1;
    const f64 y = EXP_SERIES * power_of_two(half) * power_of_two(k - half);
    return choose(x != x, x, y);
};
const auto log_long = [=](f64 x) NOINLINE {
    const truth small = truth_of(x < LEAST), usual = truth_of(x > 0.0) & truth_of(x <= MOST);
    const f64 normal = choose(usual, choose(small, x * 0x1p54, x), (f64)1.0);
    const i64 bits = __builtin_bit_cast(i64, normal), k = (bits - ROOT_OF_HALF) >> 52;
    const f64 f = __builtin_bit_cast(f64, bits - (k << 52)) - 1.0;
    const f64 whole = AS(AS(k, i32), f64) - choose(small, (f64)54.0, (f64)0.0);
    const f64 s = f / (f + 2.0), r = s * s;
    const f64 y = whole * LN2 - ((s * (f - r * LOG_SERIES) - whole * LN2_REST) - f);
    const f64 other = choose(x > 0.0, x, choose(x == 0.0, (f64)-INFINITE, (f64)NOT_A_NUMBER));
    return choose(usual, y, other);
};
// Small integer powers are multiplied out: so powers of integers are exact.
const auto pow_long = [=](f64 x, f64 y) NOINLINE {
    const f64 z = y * log_long(x), size = abs_of(y);
    const truth normal = truth_of(x >= LEAST) & truth_of(x <= MOST), whole = truth_of(rint_of(y) == y);
    const truth usual = normal & truth_of(z >= -700.0) & truth_of(z <= 700.0);
    const truth few = usual & whole & truth_of(size < 8.0), other = (usual == no) | (whole & (few == no));
    f64 found = exp_long(z);
    if (any_lane(few)) {
        const i32 n = AS(choose(few, size, (f64)0.0), i32);
        const f64 one = 1.0, two = x * x;
        const f64 up = choose((n & 1) != 0, x, one) * choose((n & 2) != 0, two, one)
            * choose((n & 4) != 0, two * two, one);
        found = choose(few, choose(y < 0.0, one / up, up), found);
    }
    if (any_lane(other)) EACH_LANE found[k] = other[k] ? pow(x[k], y[k]) : found[k];
    return found;
};
const auto log1p_long = [=](f64 x) NOINLINE {
    const f64 u = x + 1.0, v = u - 1.0, y = log_long(u);
    const f64 found = choose(x > 1e300, y, y * (x / choose(v == 0.0, (f64)1.0, v)));
    return choose(v == 0.0, x, found);
};
const auto expm1_long = [=](f64 x) NOINLINE {
    const f64 u = exp_long(x), v = u - 1.0, w = log_long(u);
    const f64 found = v * (x / choose(w == 0.0, (f64)1.0, w));
    return choose(v == 0.0, x, choose(truth_of(v == -1.0) | truth_of(v > 1e300), v, found));
};
