/* TCP under RED with a lag that depends on the queue, by hand: the rival of the uniform mesh.

   CLASSES flow classes with windows W_k, one queue q and its average x; lag R_k = T_k + q/C:
     W_k' = 1/R_k - W_k W_k(t - R_k) p(x(t - R_k)) / (2 R_k(t - R_k))
     q'   = sum of n_k W_k/R_k - C, held where it would leave [0, buffer]
     x'   = pole (q - x)
   Classical Runge-Kutta steps, first same as last; cubic Hermite interpolation of a history whose
   rows (W_k, q, x, 0, and step times their slopes) stand side by side for LANES trajectories.
   Build with -DREAL=double -DCLASSES=1 -DLANES=32. */
#include <stdlib.h>
#include <string.h>

typedef REAL real;
typedef real row_half __attribute__((vector_size(4 * sizeof(real))));

enum { STATES = CLASSES + 2, ROW = 8 * CLASSES, Q = CLASSES, X = CLASSES + 1 };

typedef real state[STATES][LANES];

typedef struct {
    real flows[CLASSES][LANES], propagation[CLASSES][LANES];
    real capacity[LANES], pole[LANES], min_th[LANES], max_th[LANES], slope[LANES], buffer[LANES];
    real per_packet[LANES]; /* 1 / capacity */
    state before;           /* the constant history */
} parameters;

#define EACH_LANE for (int l = 0; l < LANES; l++)
#define EACH_STATE for (int s = 0; s < STATES; s++)
#define INLINE static inline __attribute__((always_inline))

/* Step times the slopes at the fraction c of the step after node n. */
INLINE void field(const parameters *p, const real *restrict ring, int n, int mask, int first,
                  real c, real step, real per_step, state y, state out)
{
    real inflow[LANES];
    EACH_LANE inflow[l] = 0;
    for (int k = 0; k < CLASSES; k++) {
        real old[LANES][4] __attribute__((aligned(64)));
        real trip[LANES], a[LANES], b[LANES], d[LANES], e[LANES], back[LANES];
        int older[LANES], newer[LANES];
        EACH_LANE {
            trip[l] = p->propagation[k][l] + y[Q][l] * p->per_packet[l];
            back[l] = trip[l] * per_step - c;
            int whole = (int)back[l];
            real t = 1 - (back[l] - (real)whole), rest = 1 - t;
            older[l] = (((n - whole - 1) & mask) * LANES + l) * ROW + 8 * k;
            newer[l] = (((n - whole) & mask) * LANES + l) * ROW + 8 * k;
            d[l] = t * t * (3 - 2 * t);
            a[l] = 1 - d[l];
            b[l] = t * rest * rest;
            e[l] = -t * t * rest;
        }
        EACH_LANE {
            const row_half *i = (const row_half *)(ring + older[l]);
            const row_half *j = (const row_half *)(ring + newer[l]);
            *(row_half *)old[l] = a[l] * i[0] + b[l] * i[1] + d[l] * j[0] + e[l] * j[1];
        }
        EACH_LANE {
            int early = back[l] > (real)first; /* before the start */
            real w = early ? p->before[k][l] : old[l][0];
            real q = early ? p->before[Q][l] : old[l][1];
            real x = early ? p->before[X][l] : old[l][2];
            real mark = (x - p->min_th[l]) * p->slope[l];
            mark = mark < 0 ? 0 : mark;
            mark = x > p->max_th[l] ? 1 : mark;
            real old_trip = p->propagation[k][l] + q * p->per_packet[l], rate = 1 / trip[l];
            out[k][l] = step * (rate - y[k][l] * w / (2 * old_trip) * mark);
            inflow[l] += p->flows[k][l] * y[k][l] * rate;
        }
    }
    EACH_LANE {
        real change = inflow[l] - p->capacity[l];
        change = y[Q][l] <= 0 && change < 0 ? 0 : change;
        change = y[Q][l] >= p->buffer[l] && change > 0 ? 0 : change;
        out[Q][l] = step * change;
        out[X][l] = step * (p->pole[l] * (y[Q][l] - y[X][l]));
    }
}

INLINE void write_row(real *ring, int slot, state y, state k1)
{
    EACH_LANE for (int k = 0; k < CLASSES; k++) {
        real *row = ring + ((size_t)slot * LANES + l) * ROW + 8 * k;
        row[0] = y[k][l], row[1] = y[Q][l], row[2] = y[X][l], row[3] = 0;
        row[4] = k1[k][l], row[5] = k1[Q][l], row[6] = k1[X][l], row[7] = 0;
    }
}

/* `trajectories` runs of `steps` steps. Arrays have the trajectories last: given (2 K + 6, B) in
   the order of `parameters`, start (K + 2, B), saved (steps / every, K + 2, B). */
int solve(int trajectories, long steps, long every, double length, int slots, const real *given,
          const real *start, real *saved)
{
    const real step = (real)length, per_step = (real)(1 / length);
    const int mask = slots - 1; /* slots is a power of two */
    real *ring = aligned_alloc(64, (sizeof(real) * slots * LANES * ROW + 63) / 64 * 64);
    if (!ring) return 1;
    for (int begin = 0; begin < trajectories; begin += LANES) {
        parameters p;
        state y, k1, k2, k3, k4, z;
        EACH_LANE {
            size_t lane = begin + l < trajectories ? begin + l : trajectories - 1;
            const real *g = given + lane;
            for (int k = 0; k < CLASSES; k++, g += trajectories) p.flows[k][l] = *g;
            for (int k = 0; k < CLASSES; k++, g += trajectories) p.propagation[k][l] = *g;
            real *one[] = {p.capacity, p.pole, p.min_th, p.max_th, p.slope, p.buffer};
            for (int i = 0; i < 6; i++, g += trajectories) one[i][l] = *g;
            p.per_packet[l] = 1 / p.capacity[l];
            EACH_STATE p.before[s][l] = y[s][l] = start[s * (size_t)trajectories + lane];
        }
        memset(ring, 0, sizeof(real) * slots * LANES * ROW);
        field(&p, ring, 0, mask, 0, 0, step, per_step, y, k1);
        write_row(ring, 0, y, k1);
        for (long n = 0; n < steps; n++) {
            int at = (int)(n & mask) + slots, first = n < slots ? (int)n : slots;
            EACH_STATE EACH_LANE z[s][l] = y[s][l] + (real)0.5 * k1[s][l];
            field(&p, ring, at, mask, first, (real)0.5, step, per_step, z, k2);
            EACH_STATE EACH_LANE z[s][l] = y[s][l] + (real)0.5 * k2[s][l];
            field(&p, ring, at, mask, first, (real)0.5, step, per_step, z, k3);
            EACH_STATE EACH_LANE z[s][l] = y[s][l] + k3[s][l];
            field(&p, ring, at, mask, first, 1, step, per_step, z, k4);
            EACH_STATE EACH_LANE {
                real rise = (k1[s][l] + 2 * (k2[s][l] + k3[s][l]) + k4[s][l]) * (real)(1.0 / 6);
                y[s][l] += rise;
            }
            field(&p, ring, at, mask, first, 1, step, per_step, y, k1);
            write_row(ring, (int)((n + 1) & mask), y, k1);
            if ((n + 1) % every == 0) {
                real *out = saved + (size_t)((n + 1) / every - 1) * STATES * trajectories;
                EACH_STATE for (int l = 0; l < LANES && begin + l < trajectories; l++)
                    out[s * (size_t)trajectories + begin + l] = y[s][l];
            }
        }
    }
    free(ring);
    return 0;
}
