// Blocks of 16 x 16 pairs in registers, where the processor has them; loops elsewhere.
#pragma once

#include <cstring>

#include "relation.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

namespace posattn {

// target[i] = source[window.lane[i]], of `available` readable numbers, in order or reversed.
template <bool kReversed, typename T>
inline void pick(const T* source, int64_t available, const Window& window, T* target) {
  for (int64_t i = 0; i < kBlock; ++i) target[i] = source[window.lane[kReversed ? kBlock - 1 - i : i]];
}

// Adds the transpose of `source` to `target`; both are 16 x 16.
template <typename T>
inline void add_transposed(const T* source, T* target) {
  for (int64_t i = 0; i < kBlock; ++i)
    for (int64_t j = 0; j < kBlock; ++j) target[i * kBlock + j] += source[j * kBlock + i];
}

template <typename T>
inline void transpose_block(const T* source, int64_t source_stride, T* target, int64_t target_stride) {
  for (int64_t i = 0; i < kBlock; ++i)
    for (int64_t j = 0; j < kBlock; ++j) target[j * target_stride + i] = source[i * source_stride + j];
}

// target[window.lane[i]] += source[i], in order or reversed; of `target` `available` numbers are there.
template <bool kReversed, typename T>
inline void add_by_bucket(const T* source, int64_t available, const Window& window, T* target) {
  for (int64_t i = 0; i < kBlock; ++i) target[window.lane[kReversed ? kBlock - 1 - i : i]] += source[i];
}

#ifdef __AVX512F__
inline __m512i reversed() {
  return _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

template <bool kReversed>
inline void pick(const float* source, int64_t available, const Window& window, float* target) {
  const __mmask16 readable = available >= kBlock ? 0xFFFF : static_cast<__mmask16>((1u << available) - 1);
  __m128i lanes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(window.lane));
  __m512i places = _mm512_cvtepu8_epi32(lanes);
  if constexpr (kReversed) {
    places = _mm512_permutexvar_epi32(reversed(), places);
  }
  const __m512 scores = _mm512_maskz_loadu_ps(readable, source);
  _mm512_storeu_ps(target, _mm512_permutexvar_ps(places, scores));
}

template <int kPlaces>
inline __m512 add_shifted(__m512 sums) {
  const __m512i bits = _mm512_castps_si512(sums);
  const __m512i shifted = _mm512_alignr_epi32(bits, _mm512_setzero_si512(), 16 - kPlaces);
  return _mm512_add_ps(sums, _mm512_castsi512_ps(shifted));
}

// For maps that rise: sums up to each place, and of those the differences between ends of buckets.
template <bool kReversed>
inline void add_by_bucket(const float* source, int64_t available, const Window& window, float* target) {
  __m512 sums = _mm512_loadu_ps(source);
  if constexpr (kReversed) sums = _mm512_permutexvar_ps(reversed(), sums);
  sums = add_shifted<8>(add_shifted<4>(add_shifted<2>(add_shifted<1>(sums))));
  const __m512i none = _mm512_set1_epi32(-1);
  const __m512i last = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(window.last)));
  const __m512i before = _mm512_alignr_epi32(last, none, 15);
  const __m512 high = _mm512_maskz_permutexvar_ps(_mm512_cmpgt_epi32_mask(last, none), last, sums);
  const __m512 low = _mm512_maskz_permutexvar_ps(_mm512_cmpgt_epi32_mask(before, none), before, sums);
  const __mmask16 there = available >= kBlock ? 0xFFFF : static_cast<__mmask16>((1u << available) - 1);
  const __m512 more = _mm512_sub_ps(high, low);
  _mm512_mask_storeu_ps(target, there, _mm512_add_ps(_mm512_maskz_loadu_ps(there, target), more));
}

inline void transpose_registers(__m512 (&row)[kBlock]) {
  __m512 step[kBlock];
  for (int i = 0; i < 8; ++i) {
    step[2 * i] = _mm512_unpacklo_ps(row[2 * i], row[2 * i + 1]);
    step[2 * i + 1] = _mm512_unpackhi_ps(row[2 * i], row[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    const auto low = [&](int j) { return _mm512_castps_pd(step[4 * i + j]); };
    row[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(0), low(2)));
    row[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(0), low(2)));
    row[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(low(1), low(3)));
    row[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(low(1), low(3)));
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = row[i], b = row[4 + i], c = row[8 + i], d = row[12 + i];
    const __m512 ab_low = _mm512_shuffle_f32x4(a, b, 0x88), ab_high = _mm512_shuffle_f32x4(a, b, 0xDD);
    const __m512 cd_low = _mm512_shuffle_f32x4(c, d, 0x88), cd_high = _mm512_shuffle_f32x4(c, d, 0xDD);
    step[i] = _mm512_shuffle_f32x4(ab_low, cd_low, 0x88);
    step[8 + i] = _mm512_shuffle_f32x4(ab_low, cd_low, 0xDD);
    step[4 + i] = _mm512_shuffle_f32x4(ab_high, cd_high, 0x88);
    step[12 + i] = _mm512_shuffle_f32x4(ab_high, cd_high, 0xDD);
  }
  for (int i = 0; i < kBlock; ++i) row[i] = step[i];
}

inline void add_transposed(const float* source, float* target) {
  __m512 row[kBlock];
  for (int i = 0; i < kBlock; ++i) row[i] = _mm512_loadu_ps(source + i * kBlock);
  transpose_registers(row);
  for (int i = 0; i < kBlock; ++i) {
    float* place = target + i * kBlock;
    _mm512_storeu_ps(place, _mm512_add_ps(_mm512_loadu_ps(place), row[i]));
  }
}

inline void transpose_block(const float* source, int64_t source_stride, float* target, int64_t target_stride) {
  __m512 row[kBlock];
  for (int i = 0; i < kBlock; ++i) row[i] = _mm512_loadu_ps(source + i * source_stride);
  transpose_registers(row);
  for (int i = 0; i < kBlock; ++i) _mm512_storeu_ps(target + i * target_stride, row[i]);
}
#endif

}  // namespace posattn
