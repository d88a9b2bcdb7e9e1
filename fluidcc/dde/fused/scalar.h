// One trajectory per thread: a number is a scalar.
#define AS(value, type) ((type)(value))
typedef bool truth;
const truth yes = true, no = false;
const auto truth_of = [](bool test) { return test; };
const auto any_lane = [](bool test) { return test; };
const auto first_lane = [](auto x) { return x; };
const auto choose = [](bool test, auto a, auto b) { return test ? a : b; };
const auto from_list = [](const auto &list, int index) { return list[index]; };
const auto from_lanes = [](const double *place) { return *place; };
const auto from_ring = [](const double *ring, int index, int more, long long stride) {
    return ring[(index + more) * stride];
};
const auto to_ring = [](double *ring, int index, long long stride, f64 x, f64 y) {
    ring[index * stride] = x;
    ring[(index + 1) * stride] = y;
};
const auto store_lanes = [](auto *place, long long, auto value) { *place = value; };

// Kahan's log1p and expm1: the factors correct the rounding of 1 + x and of exp(x) (Higham,
// Accuracy and Stability of Numerical Algorithms, 2002, section 1.14.1 and problem 1.5).
const auto log1p_scalar = [](double x) -> double {
    const double u = 1.0 + x;
    return u == 1.0 || x > 1e300 ? (u == 1.0 ? x : log(x)) : log(u) * (x / (u - 1.0));
};
const auto expm1_scalar = [](double x) -> double {
    const double u = exp(x), v = u - 1.0;
    return u == 1.0 ? x : v == -1.0 || v > 1e300 ? v : v * (x / log(u));
};
