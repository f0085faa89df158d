// softmax(scale query . key + bias) value in tiles, the softmax kept up to date from tile to tile.
#pragma once

#include <ATen/Parallel.h>

#include "logits.h"

namespace posattn {

constexpr int64_t kTileRows = 128, kTileColumns = 512;

// Turns logits into exp(logit - top) in place and returns their sum; `top` is not below any of them.
template <typename T>
T exponentials(T* row, int64_t columns, T top) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < columns; ++j) {
    row[j] = exponential(row[j] - top);
    sum += row[j];
  }
  return sum;
}

template <typename T>
T largest(const T* row, int64_t columns) {
  T top = kLowest<T>;
#pragma omp simd reduction(max : top)
  for (int64_t j = 0; j < columns; ++j) top = std::max(top, row[j]);
  return top;
}

template <typename T>
void scale_row(T* row, int64_t columns, T factor) {
  for (int64_t j = 0; j < columns; ++j) row[j] *= factor;
}

// Multiplies kept pairs by 1 / (1 - dropout), and the others by 0.
template <typename T>
void drop(const Call<T>& call, const Tile& tile, T* target, int64_t stride) {
  const auto threshold = static_cast<uint32_t>(std::min(call.dropout * 4294967296.0, 4294967295.0));
  const T kept = static_cast<T>(1.0 / (1.0 - call.dropout));
  for (int64_t i = 0; i < tile.rows; ++i) {
    const int64_t place = (tile.batch * call.heads + tile.head) * call.queries + tile.first_query + i;
    const uint32_t key = row_key(call.seed, place);
    T* row = target + i * stride;
    for (int64_t j = 0; j < tile.columns; ++j)
      row[j] *= chance(key, static_cast<uint32_t>(tile.first_key + j)) >= threshold ? kept : T(0);
  }
}

// What one thread reuses from task to task.
template <typename T>
struct Space {
  std::vector<T> tile, by_query, by_key;
  ScoreRows<T> key_scores;
  int64_t pair = -1;  // the head that `key_scores` are of
};

// Some queries of one head.
template <typename T>
class RowBlock {
 public:
  RowBlock(const Call<T>& call, int64_t batch, int64_t head, int64_t first, int64_t rows, Space<T>& all)
      : call_(call),
        bias_(call, batch, head, score_rows(call, true, batch, head, first, rows, all.by_query),
              all.key_scores),
        batch_(batch),
        head_(head),
        first_(first),
        rows_(rows) {
    std::vector<T>& space = all.tile;
    stride_ = std::min(kTileColumns, whole_blocks(call.keys));
    space.resize(rows * (stride_ + call.value_width + 2));
    tile_ = space.data();
    sum_ = tile_ + rows * stride_;
    top_ = sum_ + rows * call.value_width;
    mass_ = top_ + rows;
    std::fill(sum_, top_, T(0));
    std::fill(top_, mass_, kLowest<T>);
    std::fill(mass_, mass_ + rows, T(0));
  }

  void run(const Heads<T>& out, T* log_sum) {
    for (int64_t key = 0; key < call_.keys; key += kTileColumns) {
      const Tile tile{batch_, head_, first_, rows_, key, std::min(kTileColumns, call_.keys - key)};
      if (!is_hidden(call_, tile)) add(tile);
    }
    T* target = out.at(batch_, head_) + first_ * out.row;
    for (int64_t i = 0; i < rows_; ++i) {
      const T factor = mass_[i] > 0 ? T(1) / mass_[i] : T(0);
      for (int64_t d = 0; d < call_.value_width; ++d) target[i * out.row + d] = sum_[i * call_.value_width + d] * factor;
      log_sum[i] = mass_[i] > 0 ? top_[i] + std::log(mass_[i]) : T(0);
    }
  }

 private:
  void add(const Tile& tile) {
    logits(call_, bias_, tile, tile_, stride_);
    for (int64_t i = 0; i < rows_; ++i) {
      T* row = tile_ + i * stride_;
      const T top = std::max(top_[i], largest(row, tile.columns));
      const T reference = top == kLowest<T> ? T(0) : top;
      const T shrink = exponential(top_[i] - reference);
      mass_[i] = mass_[i] * shrink + exponentials(row, tile.columns, reference);
      if (shrink != T(1)) scale_row(sum_ + i * call_.value_width, call_.value_width, shrink);
      top_[i] = top;
    }
    if (call_.dropout > 0) drop(call_, tile, tile_, stride_);
    const T* value = call_.value.at(batch_, head_) + tile.first_key * call_.value.row;
    multiply<T>(rows_, call_.value_width, tile.columns, T(1), {tile_, stride_},
                {value, std::max(call_.value.row, call_.value_width)}, T(1), sum_, call_.value_width);
  }

  const Call<T>& call_;
  BlockBias<T> bias_;
  int64_t batch_, head_, first_, rows_, stride_;
  T *tile_, *sum_, *top_, *mass_;
};

// Writes the attended values to `out` and the logarithm of each query's sum to `log_sum`.
template <typename T>
void forward(const Call<T>& call, const Heads<T>& out, T* log_sum) {
  const int64_t blocks = (call.queries + kTileRows - 1) / kTileRows;
  at::parallel_for(0, call.batches * call.heads * blocks, 1, [&](int64_t begin, int64_t end) {
    Space<T> space;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first = task % blocks * kTileRows, pair = task / blocks;
      const int64_t rows = std::min(kTileRows, call.queries - first);
      const int64_t batch = pair / call.heads, head = pair % call.heads;
      if (space.pair != pair)
        space.key_scores = score_rows(call, false, batch, head, 0, call.keys, space.by_key);
      space.pair = pair;
      RowBlock<T>(call, batch, head, first, rows, space)
          .run(out, log_sum + pair * call.queries + first);
    }
  });
}

}  // namespace posattn
