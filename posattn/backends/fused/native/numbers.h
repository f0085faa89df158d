// Small arithmetic that the compiler turns into vector code: exponentials, chance, matrix products.
#pragma once

#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace posattn {

template <typename T>
constexpr T kLowest = -std::numeric_limits<T>::infinity();

// exp(x) for x <= 0, to about 2 units in the last place; 0 below -87.
inline float exponential(float x) {
  const float bounded = std::max(x, -87.0f);
  const float whole = std::nearbyint(bounded * 1.44269504088896341f);
  const float rest = (bounded - whole * 0.693359375f) + whole * 2.12194440e-4f;
  float series = 1.9875691500e-4f;
  series = series * rest + 1.3981999507e-3f;
  series = series * rest + 8.3334519073e-3f;
  series = series * rest + 4.1665795894e-2f;
  series = series * rest + 1.6666665459e-1f;
  series = series * rest + 5.0000001201e-1f;
  series = series * (rest * rest) + rest + 1.0f;
  const auto power = std::bit_cast<float>((static_cast<int32_t>(whole) + 127) << 23);
  return x < -87.0f ? 0.0f : series * power;
}

inline double exponential(double x) { return std::exp(x); }

// Chance by counter: whether pair (row, column) is kept follows from the seed and its place alone.
inline uint32_t row_key(uint64_t seed, uint64_t row) {
  uint64_t mixed = seed + (row + 1) * 0x9E3779B97F4A7C15ull;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBull;
  return static_cast<uint32_t>((mixed ^ (mixed >> 31)) >> 32);
}

inline uint32_t chance(uint32_t key, uint32_t column) {
  uint32_t mixed = key + column * 0x9E3779B9u;
  mixed = (mixed ^ (mixed >> 16)) * 0x7FEB352Du;
  mixed = (mixed ^ (mixed >> 15)) * 0x846CA68Bu;
  return mixed ^ (mixed >> 16);
}

template <typename T>
using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*,
                      const int*, const T*, const int*, const T*, T*, const int*);

// The process's own BLAS, where one is to be found under its usual name.
template <typename T>
Gemm<T> blas() {
  static const auto found = reinterpret_cast<Gemm<T>>(
      dlsym(RTLD_DEFAULT, std::is_same_v<T, float> ? "sgemm_" : "dgemm_"));
  return found;
}

// A matrix in rows: element (i, j) is data[i * stride + j], or data[j * stride + i] if transposed.
template <typename T>
struct Matrix {
  const T* data;
  int64_t stride;
  bool transposed = false;
};

// target[m, n] = factor * left[m, k] right[k, n] + keep * target
template <typename T>
void multiply(int64_t m, int64_t n, int64_t k, T factor, Matrix<T> left, Matrix<T> right, T keep,
              T* target, int64_t target_stride) {
  if (const auto gemm = blas<T>()) {
    const int im = static_cast<int>(m), in = static_cast<int>(n), ik = static_cast<int>(k);
    const int left_stride = static_cast<int>(left.stride), right_stride = static_cast<int>(right.stride);
    const int stride = static_cast<int>(target_stride);
    gemm(right.transposed ? "T" : "N", left.transposed ? "T" : "N", &in, &im, &ik, &factor, right.data,
         &right_stride, left.data, &left_stride, &keep, target, &stride);
    return;
  }
  const auto options = at::TensorOptions().dtype(c10::CppTypeToScalarType<T>::value);
  const auto view = [&](const T* data, int64_t rows, int64_t columns, int64_t row, int64_t column) {
    return at::from_blob(const_cast<T*>(data), {rows, columns}, {row, column}, options);
  };
  const auto a = view(left.data, m, k, left.transposed ? 1 : left.stride, left.transposed ? left.stride : 1);
  const auto b =
      view(right.data, k, n, right.transposed ? 1 : right.stride, right.transposed ? right.stride : 1);
  auto c = view(target, m, n, target_stride, 1);
  at::addmm_out(c, c, a, b, keep, factor);
}

}  // namespace posattn
