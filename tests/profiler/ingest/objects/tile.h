static inline __attribute__((always_inline)) int scaled(const volatile int *from, int at)
{
    return from[at] * 3;
}

static inline __attribute__((always_inline)) int both(const volatile int *left, const volatile int *right, int at)
{
    int sum = scaled(left, at);
    sum += scaled(right, at);
    return sum;
}
