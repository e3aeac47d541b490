#include "tile.h"

void add_kernel(const volatile int *x, const volatile int *y, int *z, int n)
{
    for (int at = 0; at < n; at++) {
        z[at] = both(x, y, at);
    }
}
