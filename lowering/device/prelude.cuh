// The kernel text's vocabulary on the GPU. cpu.h defines the same names for a C++ compiler, common.h builds on both.
#define DLCB_DEVICE __device__ __forceinline__

typedef unsigned char dlcb_u8;
typedef signed char dlcb_i8;
typedef short dlcb_i16;
typedef unsigned short dlcb_u16;
typedef unsigned int dlcb_u32;
typedef long long dlcb_i64;
typedef unsigned long long dlcb_u64;

// A kernel is a row of phases. DLCB_WARPS holds what runs from one barrier to the next, DLCB_THREADS what a thread runs without
// meeting another. On the GPU the hardware runs the threads, so both are plain braces.
#define DLCB_KERNEL(name, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define DLCB_WARPS
#define DLCB_THREADS
#define DLCB_THREAD ((int)threadIdx.x)
#define DLCB_BLOCK ((int)blockIdx.x)
#define DLCB_LOCAL(type, name, size) type name[size]
#define DLCB_LOCAL_AT(name) name
#define DLCB_SHARED(type, name, size) __shared__ type name[size]
#define DLCB_SHARED_AT(name) name
#define DLCB_BARRIER __syncthreads()
#define DLCB_SHUFFLE_XOR(source, source_index, target, target_index, mask) \
  target[target_index] = dlcb_shuffle_xor(source[source_index], mask)
#define DLCB_UNROLL _Pragma("unroll")
#define DLCB_ROLLED _Pragma("unroll 1")
// The hardware faults at an address that is no multiple, so nothing is asked.
#define DLCB_ALIGNED(address, bytes) true
// What assert() calls, which NVRTC knows without a header. The line is the number of the check.
#define DLCB_CHECK(number, holds, value, size) \
  if (!(holds)) __assertfail("an index out of range, or an integer divided by 0", "dlcb", number, __func__, 1)

DLCB_DEVICE float dlcb_f32_bits(dlcb_u32 bits) { return __uint_as_float(bits); }
DLCB_DEVICE double dlcb_f64_bits(dlcb_u64 bits) { return __longlong_as_double((dlcb_i64)bits); }
DLCB_DEVICE dlcb_u32 dlcb_bits(float value) { return __float_as_uint(value); }
DLCB_DEVICE dlcb_u32 dlcb_high_product(dlcb_u32 a, dlcb_u32 b) { return __umulhi(a, b); }
DLCB_DEVICE dlcb_u32 dlcb_shift_right(dlcb_u32 low, dlcb_u32 high, dlcb_u32 by) { return __funnelshift_r(low, high, by); }
DLCB_DEVICE dlcb_u64 dlcb_high_product(dlcb_u64 a, dlcb_u64 b) { return __umul64hi(a, b); }
template <class T>
DLCB_DEVICE int dlcb_to_i32(T x) { return (int)x; }
template <class T>
DLCB_DEVICE dlcb_i64 dlcb_to_i64(T x) { return (dlcb_i64)x; }
DLCB_DEVICE float dlcb_rsqrt(float x) { return rsqrtf(x); }
DLCB_DEVICE double dlcb_rsqrt(double x) { return rsqrt(x); }
DLCB_DEVICE float dlcb_fast_exp(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
  return result;
}
DLCB_DEVICE double dlcb_fast_exp(double x) { return exp(x); }
DLCB_DEVICE float dlcb_fast_div(float x, float y) {
  float result;
  asm("div.full.f32 %0, %1, %2;" : "=f"(result) : "f"(x), "f"(y));
  return result;
}
DLCB_DEVICE double dlcb_fast_div(double x, double y) { return x / y; }

struct dlcb_f16 { dlcb_u16 bits; };
struct dlcb_bf16 { dlcb_u16 bits; };

DLCB_DEVICE float dlcb_to_f32(dlcb_f16 x) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
  return result;
}
DLCB_DEVICE dlcb_f16 dlcb_to_f16(float x) {
  dlcb_f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}
#if __CUDA_ARCH__ >= 800
DLCB_DEVICE dlcb_bf16 dlcb_to_bf16(float x) {
  dlcb_bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
}
#else
#define DLCB_BF16_BY_BITS
#endif

DLCB_DEVICE int dlcb_shuffle_xor(int x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DLCB_DEVICE dlcb_i64 dlcb_shuffle_xor(dlcb_i64 x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DLCB_DEVICE float dlcb_shuffle_xor(float x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DLCB_DEVICE double dlcb_shuffle_xor(double x, int mask) { return __shfl_xor_sync(0xffffffffu, x, mask); }
DLCB_DEVICE dlcb_u8 dlcb_shuffle_xor(dlcb_u8 x, int mask) { return (dlcb_u8)dlcb_shuffle_xor((int)x, mask); }
DLCB_DEVICE dlcb_i8 dlcb_shuffle_xor(dlcb_i8 x, int mask) { return (dlcb_i8)dlcb_shuffle_xor((int)x, mask); }
DLCB_DEVICE dlcb_i16 dlcb_shuffle_xor(dlcb_i16 x, int mask) { return (dlcb_i16)dlcb_shuffle_xor((int)x, mask); }
DLCB_DEVICE dlcb_f16 dlcb_shuffle_xor(dlcb_f16 x, int mask) {
  return dlcb_f16{(dlcb_u16)dlcb_shuffle_xor((int)x.bits, mask)};
}
DLCB_DEVICE dlcb_bf16 dlcb_shuffle_xor(dlcb_bf16 x, int mask) {
  return dlcb_bf16{(dlcb_u16)dlcb_shuffle_xor((int)x.bits, mask)};
}
