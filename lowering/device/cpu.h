// The kernel text's vocabulary for a C++17 compiler: a block is one thread of the machine, its phases are loops.
//
// Between two barriers warps run one after another, whole; inside a warp the lanes run one after another up to the next
// shuffle. With an order seed a launch is hostile, so that a missing barrier shows: warps, lanes and blocks run in another
// order, what a block has not written is poison (all bits set, a NaN), and so is a shared element that two threads touch, one
// of them to write, without a barrier (or a shuffle of their warp) between.
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <type_traits>
#include <utility>
#include <vector>

#define DLCB_DEVICE static inline

typedef unsigned char dlcb_u8;
typedef signed char dlcb_i8;
typedef short dlcb_i16;
typedef unsigned short dlcb_u16;
typedef unsigned int dlcb_u32;
typedef long long dlcb_i64;
typedef unsigned long long dlcb_u64;

enum { DLCB_WARP = 32 };

// In which order things run: seed 0 as they are numbered, 1 the other way round, else shuffled.
struct dlcb_order {
  std::vector<int> at;

  dlcb_order(int count, dlcb_u64 seed) : at(count) {
    for (int i = 0; i < count; ++i) at[i] = seed == 1 ? count - 1 - i : i;
    dlcb_u64 state = seed;
    for (int i = count - 1; seed > 1 && i > 0; --i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      std::swap(at[i], at[(state >> 33) % (dlcb_u64)(i + 1)]);
    }
  }
};

// Which thread does something, and after how many barriers of the block and shuffles.
struct dlcb_moment {
  int barriers, shuffles, warp, thread;
};

// Who touched an element since the last barrier; `several` tells of more than one.
struct dlcb_touched {
  dlcb_moment last = {-1, -1, -1, -1};
  bool several_warps = false, several_threads = false;

  bool unordered(const dlcb_moment& now) const {
    if (last.barriers != now.barriers) return false;
    if (several_warps || last.warp != now.warp) return true;
    return last.shuffles == now.shuffles && (several_threads || last.thread != now.thread);
  }
  void add(const dlcb_moment& now) {
    const bool same_phase = last.barriers == now.barriers;
    const bool same_step = same_phase && last.warp == now.warp && last.shuffles == now.shuffles;
    several_warps = same_phase && (several_warps || last.warp != now.warp);
    several_threads = same_step && (several_threads || last.thread != now.thread);
    last = now;
  }
};

// An array of the block; plain memory, or hostile: elements that watch who touches them.
template <bool Hostile, class T, int N>
struct dlcb_shared_array {
  T values[N];
  T* at(const dlcb_moment&) { return values; }
};

template <class T>
struct dlcb_watched {
  T value;
  dlcb_touched readers, writers;

  dlcb_watched() { spoil(); }
  void spoil() { memset((void*)&value, 0xff, sizeof(value)); }
};

template <class T, int N>
struct dlcb_shared_array<true, T, N> {
  dlcb_watched<T> values[N];

  struct element {
    dlcb_watched<T>& self;
    const dlcb_moment& now;

    operator T() const {
      if (self.writers.unordered(now)) self.spoil();
      self.readers.add(now);
      return self.value;
    }
    void operator=(T value) const {
      self.value = value;
      if (self.writers.unordered(now) || self.readers.unordered(now)) self.spoil();
      self.writers.add(now);
    }
  };
  struct view {
    dlcb_watched<T>* values;
    dlcb_moment now;
    element operator[](dlcb_i64 index) const { return {values[index], now}; }
  };
  view at(const dlcb_moment& now) { return {values, now}; }
};

// What a block knows of its launch.
template <bool Hostile, int Threads>
struct dlcb_block {
  static constexpr int threads = Threads;
  static constexpr int warps = (Threads + DLCB_WARP - 1) / DLCB_WARP;
  static constexpr int lanes = Threads < DLCB_WARP ? Threads : DLCB_WARP;

  int number;
  const int* warp_order;
  const int* lane_order;
  int barriers = 0, shuffles = 0;

  int warp(int i) const { return Hostile ? warp_order[i] : i; }
  int thread(int warp, int i) const { return warp * DLCB_WARP + (Hostile ? lane_order[i] : i); }
  dlcb_moment moment(int warp, int thread) const { return {barriers, shuffles, warp, thread}; }
  template <class T>
  void poison(T& array) const {
    if (Hostile) memset((void*)&array, 0xff, sizeof(array));
  }
};

template <bool Hostile, int Threads, class... P, size_t... I>
void dlcb_run(void (*kernel)(dlcb_block<Hostile, Threads>, P...), void** args, dlcb_i64 blocks, dlcb_u64 seed,
              std::index_sequence<I...>) {
  typedef dlcb_block<Hostile, Threads> block;
  const dlcb_order block_order(Hostile ? (int)blocks : 0, seed);
  const dlcb_order warp_order(block::warps, seed), lane_order(block::lanes, seed);
  for (dlcb_i64 i = 0; i < blocks; ++i) {
    const int number = Hostile ? block_order.at[i] : (int)i;
    kernel(block{number, warp_order.at.data(), lane_order.at.data()}, *(P*)args[I]...);
  }
}

template <int Threads, class... P>
void dlcb_launch(void (*plain)(dlcb_block<false, Threads>, P...), void (*hostile)(dlcb_block<true, Threads>, P...),
                 void** args, dlcb_i64 blocks, int seed) {
  const std::index_sequence_for<P...> parameters;
  if (seed == 0) dlcb_run(plain, args, blocks, 0, parameters);
  else dlcb_run(hostile, args, blocks, (dlcb_u64)seed, parameters);
}

// What the first check that failed in this launch says: 1 + its number, the value, the size; or -1, the bytes from the last
// multiple to an address that vectors of so many bytes can't have, these bytes. A launch runs in one thread.
static thread_local long long dlcb_failed[3];
extern "C" const long long* dlcb_failure() { return dlcb_failed; }

__attribute__((noinline, cold)) static void dlcb_fail(dlcb_i64 number, dlcb_i64 value, dlcb_i64 size) {
  if (dlcb_failed[0]) return;
  dlcb_failed[0] = number + 1;
  dlcb_failed[1] = value;
  dlcb_failed[2] = size;
}

static inline bool dlcb_aligned(const void* address, size_t bytes) {
  const size_t over = (size_t)address % bytes;
  if (over) dlcb_fail(-2, (dlcb_i64)over, (dlcb_i64)bytes);
  return !over;
}
#define DLCB_ALIGNED(address, bytes) __builtin_expect(dlcb_aligned(address, bytes), 1)
#define DLCB_CHECK(number, holds, value, size) \
  if (__builtin_expect(!(holds), 0)) dlcb_fail(number, value, size)
#define DLCB_KERNEL(name, threads, ...)                                                 \
  template <bool Hostile>                                                               \
  static void name##_block(dlcb_block<Hostile, threads> dlcb_self, __VA_ARGS__);        \
  extern "C" int launch_##name(void** args, long long blocks, int order_seed) {         \
    dlcb_failed[0] = 0;                                                                 \
    dlcb_launch<threads>(name##_block<false>, name##_block<true>, args, blocks, order_seed); \
    return dlcb_failed[0] != 0;                                                         \
  }                                                                                     \
  template <bool Hostile>                                                               \
  static void name##_block(dlcb_block<Hostile, threads> dlcb_self, __VA_ARGS__)
#define DLCB_WARPS                                          \
  for (int dlcb_i = 0; dlcb_i < dlcb_self.warps; ++dlcb_i) \
    if (const int dlcb_w = dlcb_self.warp(dlcb_i); true)
#define DLCB_THREADS                                        \
  for (int dlcb_j = 0; dlcb_j < dlcb_self.lanes; ++dlcb_j) \
    if (const int dlcb_t = dlcb_self.thread(dlcb_w, dlcb_j); dlcb_t < dlcb_self.threads)
#define DLCB_THREAD dlcb_t
#define DLCB_BLOCK dlcb_self.number
#define DLCB_LOCAL(type, name, size)   \
  type name[dlcb_self.threads][size]; \
  dlcb_self.poison(name)
#define DLCB_LOCAL_AT(name) name[dlcb_t]
#define DLCB_SHARED(type, name, size) dlcb_shared_array<Hostile, type, size> name
#define DLCB_SHARED_AT(name) name.at(dlcb_self.moment(dlcb_w, dlcb_t))
#define DLCB_BARRIER ++dlcb_self.barriers
#define DLCB_SHUFFLE_XOR(source, source_index, target, target_index, mask) \
  ++dlcb_self.shuffles;                                                    \
  dlcb_shuffle_xor(source + dlcb_w * DLCB_WARP, source_index, target + dlcb_w * DLCB_WARP, target_index, mask)
#define DLCB_UNROLL
#define DLCB_ROLLED

// Rows of `source` and `target` are a warp's lanes.
template <class T, size_t N, size_t M>
void dlcb_shuffle_xor(T (*source)[N], dlcb_i64 source_index, T (*target)[M], dlcb_i64 target_index, int mask) {
  T taken[DLCB_WARP];
  for (int lane = 0; lane < DLCB_WARP; ++lane) taken[lane] = source[lane ^ mask][source_index];
  for (int lane = 0; lane < DLCB_WARP; ++lane) target[lane][target_index] = taken[lane];
}

template <class To, class From>
To dlcb_same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "a type of the same size");
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

DLCB_DEVICE float dlcb_f32_bits(dlcb_u32 bits) { return dlcb_same_bits<float>(bits); }
DLCB_DEVICE double dlcb_f64_bits(dlcb_u64 bits) { return dlcb_same_bits<double>(bits); }
DLCB_DEVICE dlcb_u32 dlcb_bits(float value) { return dlcb_same_bits<dlcb_u32>(value); }
DLCB_DEVICE dlcb_u32 dlcb_high_product(dlcb_u32 a, dlcb_u32 b) { return (dlcb_u32)((dlcb_u64)a * b >> 32); }
// The low word of both, shifted by less than a word.
DLCB_DEVICE dlcb_u32 dlcb_shift_right(dlcb_u32 low, dlcb_u32 high, dlcb_u32 by) {
  return (dlcb_u32)(((dlcb_u64)high << 32 | low) >> by);
}
DLCB_DEVICE dlcb_u64 dlcb_high_product(dlcb_u64 a, dlcb_u64 b) { return (dlcb_u64)((unsigned __int128)a * b >> 64); }

// A float without a place among the integers becomes the lowest of them, as this machine's instruction makes it.
template <class T>
DLCB_DEVICE int dlcb_to_i32(T x) { return x > (T)-2147483649.0 && x < (T)2147483648.0 ? (int)x : -2147483647 - 1; }
template <class T>
DLCB_DEVICE dlcb_i64 dlcb_to_i64(T x) {
  return x >= (T)-0x1p63 && x < (T)0x1p63 ? (dlcb_i64)x : -9223372036854775807LL - 1;
}

DLCB_DEVICE float dlcb_rsqrt(float x) { return 1.0f / sqrtf(x); }
DLCB_DEVICE double dlcb_rsqrt(double x) { return 1.0 / sqrt(x); }
DLCB_DEVICE float dlcb_fast_exp(float x) { return expf(x); }
DLCB_DEVICE double dlcb_fast_exp(double x) { return exp(x); }
DLCB_DEVICE float dlcb_fast_div(float x, float y) { return x / y; }
DLCB_DEVICE double dlcb_fast_div(double x, double y) { return x / y; }

struct dlcb_f16 { dlcb_u16 bits; };
struct dlcb_bf16 { dlcb_u16 bits; };

DLCB_DEVICE float dlcb_to_f32(dlcb_f16 x) {
  const dlcb_u32 sign = (dlcb_u32)(x.bits & 0x8000u) << 16, exponent = x.bits >> 10 & 31u, fraction = x.bits & 0x3ffu;
  if (exponent == 31u) return dlcb_f32_bits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0u) return dlcb_f32_bits(sign | (exponent + 112u) << 23 | fraction << 13);
  const float magnitude = (float)fraction * 0x1p-24f;
  return sign ? -magnitude : magnitude;
}

// Rounds to nearest, ties to even: adding half a unit of the last kept bit, less one where that bit is even, carries as it should.
DLCB_DEVICE dlcb_f16 dlcb_to_f16(float x) {
  const dlcb_u32 bits = dlcb_bits(x), magnitude = bits & 0x7fffffffu;
  const dlcb_u16 sign = (dlcb_u16)(bits >> 16 & 0x8000u);
  if (magnitude > 0x7f800000u) return dlcb_f16{(dlcb_u16)(sign | 0x7fffu)};
  if (magnitude >= 0x477ff000u) return dlcb_f16{(dlcb_u16)(sign | 0x7c00u)};
  if (magnitude >= 0x38800000u) {
    const dlcb_u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23);
    return dlcb_f16{(dlcb_u16)(sign | rounded >> 13)};
  }
  // Below 2^-14 the unit is 2^-24, the unit of floats in [0.5, 1): the addition of 0.5 rounds to it.
  const dlcb_u32 subnormal = dlcb_bits(dlcb_f32_bits(magnitude) + 0.5f) - 0x3f000000u;
  return dlcb_f16{(dlcb_u16)(sign | subnormal)};
}
#define DLCB_BF16_BY_BITS
