// One trajectory per thread: a number is a scalar.
#define NOINLINE __attribute__((noinline))
#ifdef __CUDA_ARCH__
#define FENCE asm volatile("" ::: "memory")
#define ONE_BY_ONE _Pragma("unroll 1")
#else
#define FENCE
#define ONE_BY_ONE
#endif
#define AS(value, type) ((type)(value))
typedef bool truth;
const truth yes = true, no = false;
const auto truth_of = [](bool test) { return test; };
const auto any_lane = [](bool test) { return test; };
const auto first_lane = [](auto x) { return x; };
const auto choose = [](bool test, auto a, auto b) { return test ? a : b; };
const auto from_list = [](const auto &list, int index) { return list[index]; };
const auto from_lanes = [](const double *place) { return *place; };
const auto from_ring = [](const double *ring, int index, int more, int stride) {
    return ring[(long long)(index + more) * stride];
};
const auto to_ring = [](double *ring, int index, int stride, f64 x, f64 y) {
    ring[(long long)index * stride] = x;
    ring[(long long)(index + 1) * stride] = y;
};
const auto one_to_ring = [](double *ring, int index, int stride, f64 x) {
    ring[(long long)index * stride] = x;
};
const auto store_lanes = [](auto *place, long long, auto value) { *place = value; };

// Kahan's log1p and expm1: the factors correct the rounding of 1 + x and of exp(x) (Higham,
// Accuracy and Stability of Numerical Algorithms, 2002, section 1.14.1 and problem 1.5).
const auto log1p_scalar = [](double x) NOINLINE -> double {
    const double u = 1.0 + x;
    return u == 1.0 || x > 1e300 ? (u == 1.0 ? x : log(x)) : log(u) * (x / (u - 1.0));
};
const auto expm1_scalar = [](double x) NOINLINE -> double {
    const double u = exp(x), v = u - 1.0;
    return u == 1.0 ? x : v == -1.0 || v > 1e300 ? v : v * (x / log(u));
};
