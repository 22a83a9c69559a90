// What kernels compute with, on every target.

DLCB_DEVICE float dlcb_to_f32(dlcb_bf16 x) { return dlcb_f32_bits((dlcb_u32)x.bits << 16); }
#ifdef DLCB_BF16_BY_BITS
DLCB_DEVICE dlcb_bf16 dlcb_to_bf16(float x) {
  const dlcb_u32 bits = dlcb_bits(x);
  if (x != x) return dlcb_bf16{0x7fff};
  return dlcb_bf16{(dlcb_u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16)};
}
#endif

// Several elements that are loaded or stored as one; the address is a multiple of their bytes, of 16 where they are more.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) dlcb_vec {
  T at[N];
};
template <int N, class T>
DLCB_DEVICE dlcb_vec<T, N> dlcb_load_vector(const T* array, dlcb_i64 index) {
  typedef dlcb_vec<T, N> vec;
  return DLCB_ALIGNED(array + index, alignof(vec)) ? *(const vec*)(array + index) : vec{};
}
// As words, so that the zeros are whole registers.
template <int BYTES>
struct alignas(BYTES < 16 ? BYTES : 16) dlcb_words {
  dlcb_u32 word[BYTES / 4];
};
template <>
struct alignas(2) dlcb_words<2> {
  dlcb_u16 word[1];
};
template <int N, class T>
DLCB_DEVICE dlcb_vec<T, N> dlcb_load_vector_if(bool holds, const T* array, dlcb_i64 index) {
  typedef dlcb_words<sizeof(dlcb_vec<T, N>)> words;
  words found{};
  if (holds && DLCB_ALIGNED(array + index, alignof(words))) found = *(const words*)(array + index);
  return *(const dlcb_vec<T, N>*)&found;
}
template <class T, int N>
DLCB_DEVICE void dlcb_store_vector(T* array, dlcb_i64 index, dlcb_vec<T, N> values) {
  typedef dlcb_vec<T, N> vec;
  if (DLCB_ALIGNED(array + index, alignof(vec))) *(vec*)(array + index) = values;
}

// Lanes of a vector from `lower` up to `upper`, one by one; zeros elsewhere.
template <int N, class T, class I>
DLCB_DEVICE dlcb_words<sizeof(T) * N> dlcb_load_lanes(I lower, I upper, const T* from) {
  dlcb_words<sizeof(T) * N> found{};
  const int bytes = sizeof(T), word = sizeof(found.word[0]);
  DLCB_UNROLL
  for (int lane = 0; lane < N; ++lane) {
    if (lane < lower || upper <= lane) continue;
    if constexpr (sizeof(T) < 4) {
      const dlcb_u32 bits = bytes == 1 ? *(const dlcb_u8*)(from + lane) : *(const dlcb_u16*)(from + lane);
      found.word[lane * bytes / word] |= bits << lane * bytes % word * 8;
    } else {
      *((T*)&found + lane) = from[lane];
    }
  }
  return found;
}
// As many bytes from any address of a T: those of two aligned vectors, moved by words, then by bits.
template <class T, int BYTES>
DLCB_DEVICE dlcb_words<BYTES> dlcb_load_unaligned(const T* from) {
  const int count = BYTES / 4;
  const dlcb_u32 over = (dlcb_u32)(dlcb_u64)from % BYTES;
  const dlcb_words<BYTES>* at = (const dlcb_words<BYTES>*)((const char*)from - over);
  const dlcb_words<BYTES> low = at[0], high = at[1];
  dlcb_u32 word[2 * count];
  DLCB_UNROLL
  for (int i = 0; i < count; ++i) word[i] = low.word[i], word[count + i] = high.word[i];
  DLCB_UNROLL
  for (int by = count / 2; by > 0; by /= 2) {
    DLCB_UNROLL
    for (int i = 0; i < 2 * count - by; ++i) word[i] = over & by * 4 ? word[i + by] : word[i];
  }
  dlcb_words<BYTES> found;
  DLCB_UNROLL
  for (int i = 0; i < count; ++i) {
    found.word[i] = sizeof(T) < 4 ? dlcb_shift_right(word[i], word[i + 1], over % 4 * 8) : word[i];
  }
  return found;
}
// A part of a vector; memory of other lanes is not touched.
template <int N, class T, class I>
DLCB_DEVICE dlcb_vec<T, N> dlcb_load_part(I lower, I upper, const T* array, dlcb_i64 index) {
  typedef dlcb_words<sizeof(T) * N> words;
  words found{};
  if (lower <= 0 && N <= upper) {
    if (DLCB_ALIGNED(array + index, alignof(words))) found = *(const words*)(array + index);
  } else if (lower < N && 0 < upper) {
    found = dlcb_load_lanes<N>(lower, upper, array + index);
  }
  return *(const dlcb_vec<T, N>*)&found;
}
template <int N, class T, class I>
DLCB_DEVICE dlcb_vec<T, N> dlcb_load_unaligned_part(I lower, I upper, const T* array, dlcb_i64 index) {
  const int bytes = sizeof(T) * N;
  dlcb_words<bytes> found{};
  if (bytes >= 4 && lower <= 1 - N && 2 * N - 1 <= upper) {
    if constexpr (bytes >= 4) found = dlcb_load_unaligned<T, bytes>(array + index);
  } else if (lower < N && 0 < upper) {
    found = dlcb_load_lanes<N>(lower, upper, array + index);
  }
  return *(const dlcb_vec<T, N>*)&found;
}
template <class T, int N, class I>
DLCB_DEVICE void dlcb_store_part(I lower, I upper, T* array, dlcb_i64 index, dlcb_vec<T, N> values) {
  if (lower <= 0 && N <= upper) return dlcb_store_vector(array, index, values);
  DLCB_UNROLL
  for (int lane = 0; lane < N; ++lane) {
    if (lower <= lane && lane < upper) array[index + lane] = values.at[lane];
  }
}

// dividend / divisor for a dividend that is not negative; see magic.py for the constants.
DLCB_DEVICE int dlcb_magic_div(int dividend, int mul, int shift) {
  return (int)(dlcb_high_product((dlcb_u32)dividend << 1, (dlcb_u32)mul) >> shift);
}
DLCB_DEVICE dlcb_i64 dlcb_magic_div(dlcb_i64 dividend, dlcb_i64 mul, dlcb_i64 shift) {
  return (dlcb_i64)(dlcb_high_product((dlcb_u64)dividend << 1, (dlcb_u64)mul) >> shift);
}

// Integer division by 0 gives 0; by -1 it is a negation that wraps.
template <class T>
DLCB_DEVICE T dlcb_negate(T a) { return (T)(0 - (dlcb_u64)a); }
template <class T>
DLCB_DEVICE T dlcb_truncdiv(T a, T b) { return b == 0 ? 0 : b == -1 ? dlcb_negate(a) : a / b; }
template <class T>
DLCB_DEVICE T dlcb_remainder(T a, T b) { return b == 0 || b == -1 ? 0 : a % b; }
template <class T>
DLCB_DEVICE T dlcb_floordiv(T a, T b) {
  const T rest = dlcb_remainder(a, b);
  return dlcb_truncdiv(a, b) - (rest != 0 && (rest < 0) != (b < 0));
}
template <class T>
DLCB_DEVICE T dlcb_mod(T a, T b) {
  const T rest = dlcb_remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

DLCB_DEVICE float dlcb_remainder(float a, float b) { return fmodf(a, b); }
DLCB_DEVICE double dlcb_remainder(double a, double b) { return fmod(a, b); }
DLCB_DEVICE float dlcb_mod(float a, float b) {
  const float rest = fmodf(a, b);
  return rest != 0.0f && (rest < 0.0f) != (b < 0.0f) ? rest + b : rest;
}
DLCB_DEVICE double dlcb_mod(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0.0 && (rest < 0.0) != (b < 0.0) ? rest + b : rest;
}

// Without its remainder the dividend is a multiple of the divisor, so the quotient is a whole number but for rounding.
template <class T>
DLCB_DEVICE T dlcb_float_floordiv(T a, T b) {
  if (b == 0) return a / b;
  const T rest = dlcb_remainder(a, b);
  const T quotient = (a - rest) / b - (T)(rest != 0 && (rest < 0) != (b < 0));
  if (quotient == 0) return (T)copysign((T)0, a / b);
  const T below = floor(quotient);
  return quotient - below > (T)0.5 ? below + 1 : below;
}
DLCB_DEVICE float dlcb_floordiv(float a, float b) { return dlcb_float_floordiv(a, b); }
DLCB_DEVICE double dlcb_floordiv(double a, double b) { return dlcb_float_floordiv(a, b); }

// A negative power of an integer is that of 1 / base, rounded towards zero.
template <class T>
DLCB_DEVICE T dlcb_integer_pow(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  dlcb_u64 result = 1;
  for (dlcb_u64 power = (dlcb_u64)base; exponent != 0; exponent /= 2, power *= power) {
    if (exponent % 2 != 0) result *= power;
  }
  return (T)result;
}

// NaN where either operand is one; of equal numbers the first, so that a bound of 0 keeps -0.
template <class T>
DLCB_DEVICE T dlcb_maximum(T a, T b) { return a != a || a >= b ? a : b; }
template <class T>
DLCB_DEVICE T dlcb_minimum(T a, T b) { return a != a || a <= b ? a : b; }
// Of zeros of different signs either.
template <class T>
DLCB_DEVICE T dlcb_fast_maximum(T a, T b) { return dlcb_maximum(a, b); }
template <class T>
DLCB_DEVICE T dlcb_fast_minimum(T a, T b) { return dlcb_minimum(a, b); }
#if __CUDA_ARCH__ >= 800
DLCB_DEVICE float dlcb_fast_maximum(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
DLCB_DEVICE float dlcb_fast_minimum(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
#endif

// ln(e^a + e^b); infinities that are equal are the answer.
DLCB_DEVICE float dlcb_logaddexp(float a, float b) {
  const float high = dlcb_maximum(a, b), low = dlcb_minimum(a, b);
  return high == low && low - low != 0 ? a : high + log1pf(expf(low - high));
}
DLCB_DEVICE double dlcb_logaddexp(double a, double b) {
  const double high = dlcb_maximum(a, b), low = dlcb_minimum(a, b);
  return high == low && low - low != 0 ? a : high + log1p(exp(low - high));
}

template <class T>
DLCB_DEVICE T dlcb_sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : (T)0; }

// A shift by as many bits as there are, or more, leaves no bit but the sign's.
template <class T>
DLCB_DEVICE T dlcb_shl(T a, T by) { return by < 0 || by >= (T)(sizeof(T) * 8) ? 0 : (T)((dlcb_u64)a << by); }
template <class T>
DLCB_DEVICE T dlcb_shr(T a, T by) {
  if (by < 0 || by >= (T)(sizeof(T) * 8)) return a < 0 ? (T)-1 : (T)0;
  return a >> by;
}
