// Several trajectories per thread in SIMD lanes: a number is a vector, a condition a mask.
#define FENCE
#define ONE_BY_ONE
// Inlining the functions marked NOINLINE at each use would take long to compile.
#define NOINLINE __attribute__((noinline))
#define EACH_LANE for (int k = 0; k < SIMD_LANES; ++k)
#define AS(value, type) __builtin_convertvector(value, type)
typedef decltype(f64() < f64()) truth;
const truth yes = (truth)-1, no = (truth)0;
const auto truth_of = [](auto test) { return AS(test, truth); };
const auto any_lane = [](truth test) { return __builtin_reduce_or(test) != 0; };
const auto first_lane = [](auto x) { return x[0]; };
const auto choose = [](auto test, auto a, auto b) { return AS(test, decltype(a == a)) ? a : b; };
const auto from_list = [](const auto &list, i32 index) {
    const int most = sizeof(list) / sizeof(list[0]) - 1;
    auto x = list[0];
    EACH_LANE x[k] = list[index[k] < 0 ? 0 : index[k] > most ? most : index[k]][k];
    return x;
};
const auto from_lanes = [](const double *place) {
    f64 x;
    __builtin_memcpy(&x, place, sizeof x);
    return x;
};
const auto store_lanes = [](auto *place, long long stride, auto value) NOINLINE {
    EACH_LANE place[k * stride] = value[k];
};

// The histories of the trajectories are contiguous, one after the other.
const auto from_ring = [](const double *ring, i32 index, int more, int) NOINLINE {
    f64 x;
    EACH_LANE x[k] = ring[k * HISTORY + index[k] + more];
    return x;
};
const auto to_ring = [](double *ring, int index, int, f64 x, f64 y) NOINLINE {
    EACH_LANE {
        const double two[2] = {x[k], y[k]};
        __builtin_memcpy(ring + k * HISTORY + index, two, sizeof two);
    }
};

const auto one_to_ring = [](double *ring, int index, int, f64 x) NOINLINE {
    EACH_LANE ring[k * HISTORY + index] = x[k];
};

// Four adjacent numbers in the row of each of eight trajectories: an 8 x 4 matrix is transposed.
typedef double part __attribute__((ext_vector_type(4)));
struct Four { f64 of[4]; };
const auto four_from_ring = [](const double *ring, i32 index, int more) {
    part x[SIMD_LANES];
    EACH_LANE __builtin_memcpy(x + k, ring + k * HISTORY + index[k] + more, sizeof x[k]);
    f64 y[4], z[4];
    for (int k = 0; k < 4; ++k)
        y[k] = __builtin_shufflevector(x[k], x[k + 4], 0, 1, 2, 3, 4, 5, 6, 7);
    for (int k = 0; k < 4; k += 2) {
        z[k] = __builtin_shufflevector(y[k], y[k + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        z[k + 1] = __builtin_shufflevector(y[k], y[k + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    Four four;
    for (int k = 0; k < 2; ++k) {
        four.of[k] = __builtin_shufflevector(z[k], z[k + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        four.of[k + 2] = __builtin_shufflevector(z[k], z[k + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    return four;
};
