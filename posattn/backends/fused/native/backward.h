// Gradients, tile by tile from the logarithms of the sums: probabilities are computed again, never kept.
#pragma once

#include "forward.h"

namespace posattn {

// Gradients of the scores, or of the rows and the table [batch, heads, buckets] whose products they are.
template <typename T>
struct LookupGradients {
  Heads<T> scores, rows, table;
};

// Where the gradients go; what is absent has no data.
template <typename T>
struct Gradients {
  Heads<T> query, key, value;
  LookupGradients<T> by_query, by_key;
  T* distance_scores = nullptr;  // [batch, heads, 2 reach + 1], reversed as in the call
  Pairs<T> dense;
};

template <typename T>
T total(const T* numbers, int64_t length) {
  T sum = 0;
  if (length < 2 * kBlock) {
    for (int64_t i = 0; i < length; ++i) sum += numbers[i];
    return sum;
  }
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < length; ++i) sum += numbers[i];
  return sum;
}

// Sums a row of gradients by bucket, given the places of its query and of its keys: distances fall.
template <typename T>
void sum_falling(const Relation& relation, int64_t own, const int32_t* places, const int32_t* runs,
                 int64_t length, const T* source, T* target) {
  for (int64_t j = 0; j < length;) {
    const int64_t distance = own - places[j], most = std::min<int64_t>(length - j, runs[j]);
    const int64_t low = distance - kBlock + 1;
    if (most >= kBlock && relation.is_rising() && relation.holds(low) && relation.holds(distance) &&
        !relation.is_constant(low, distance)) {
      const Window& window = relation.rising(low);
      add_by_bucket<true>(source + j, relation.num_buckets() - window.first, window, target + window.first);
      j += kBlock;
      continue;
    }
    const int64_t steps = std::min(most, relation.stepping_below(distance));
    T* place = target + relation.bucket(distance);
    if (steps > 1) {
      for (int64_t l = 0; l < steps; ++l) place[-l] += source[j + l];
      j += steps;
      continue;
    }
    const int64_t alike = std::min(most, relation.alike_below(distance));
    *place += total(source + j, alike);
    j += alike;
  }
}

// The same for a row of queries as one key sees them: distances rise.
template <typename T>
void sum_rising(const Relation& relation, int64_t own, const int32_t* places, const int32_t* runs,
                int64_t length, const T* source, T* target) {
  for (int64_t i = 0; i < length;) {
    const int64_t distance = places[i] - own, most = std::min<int64_t>(length - i, runs[i]);
    const int64_t high = distance + kBlock - 1;
    if (most >= kBlock && relation.is_rising() && relation.holds(distance) && relation.holds(high) &&
        !relation.is_constant(distance, high)) {
      const Window& window = relation.rising(distance);
      add_by_bucket<false>(source + i, relation.num_buckets() - window.first, window, target + window.first);
      i += kBlock;
      continue;
    }
    const int64_t steps = std::min(most, relation.stepping_above(distance));
    T* place = target + relation.bucket(distance);
    if (steps > 1) {
      for (int64_t l = 0; l < steps; ++l) place[l] += source[i + l];
      i += steps;
      continue;
    }
    const int64_t alike = std::min(most, relation.alike_above(distance));
    *place += total(source + i, alike);
    i += alike;
  }
}

// Sums a row by distance, into numbers that are ordered by falling distance.
template <typename T>
void sum_by_distance(int64_t reach, int64_t own, const int32_t* places, const int32_t* runs, int64_t length,
                     const T* source, T* target) {
  for (int64_t j = 0; j < length;) {
    const int64_t distance = own - places[j];
    int64_t alike = std::min<int64_t>(length - j, runs[j]);
    T* place = target + reach - std::clamp(distance, -reach, reach);
    alike = distance > reach ? 1 : std::clamp<int64_t>(distance + reach + 1, 1, alike);
    for (int64_t l = 0; l < alike; ++l) place[l] += source[j + l];
    j += alike;
  }
}

template <typename T>
void transpose(const T* source, int64_t rows, int64_t columns, int64_t source_stride, T* target,
               int64_t target_stride) {
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      const T* from = source + i * source_stride + j;
      T* to = target + j * target_stride + i;
      if (i + kBlock <= rows && j + kBlock <= columns) {
        transpose_block(from, source_stride, to, target_stride);
        continue;
      }
      for (int64_t a = 0; a < std::min(kBlock, rows - i); ++a)
        for (int64_t b = 0; b < std::min(kBlock, columns - j); ++b)
          to[b * target_stride + a] = from[a * source_stride + b];
    }
  }
}

// Gradients of some tokens' scores, in the tensor itself or in `space` until they are multiplied out.
template <typename T>
class ScoreGradients {
 public:
  ScoreGradients(const Call<T>& call, const Gradients<T>& gradients, bool is_query, int64_t batch, int64_t head,
                 int64_t first, int64_t number, std::vector<T>& space)
      : call_(call),
        lookup_(is_query ? call.by_query : call.by_key),
        gradients_(is_query ? gradients.by_query : gradients.by_key),
        is_query_(is_query),
        batch_(batch),
        head_(head),
        first_(first),
        number_(number) {
    if (!lookup_.relation) return;
    if (!lookup_.is_product()) {
      data_ = gradients_.scores.at(batch, head), stride_ = gradients_.scores.row;
      return;
    }
    stride_ = whole_blocks(lookup_.relation->num_buckets());
    space.assign(number * stride_, T(0));
    data_ = space.data() - first * stride_;
  }

  T* row(int64_t token) const { return data_ + token * stride_; }

  // Hands the gradients of products on to rows and table.
  void finish() const {
    if (!lookup_.relation || !lookup_.is_product()) return;
    const int64_t width = lookup_.width;
    const Heads<const T>&rows = lookup_.rows, &table = lookup_.table;
    const Heads<T>&to_rows = gradients_.rows, &to_table = gradients_.table;
    by_group(call_, is_query_, batch_, first_, number_, [&](int64_t start, int64_t size, int64_t low, int64_t high) {
      const T* scores = row(start) + low;
      multiply<T>(size, width, high - low + 1, T(1), {scores, stride_},
                  {table.at(batch_, head_) + low * table.row, std::max(table.row, width)}, T(1),
                  to_rows.at(batch_, head_) + start * to_rows.row, std::max(to_rows.row, width));
      multiply<T>(high - low + 1, width, size, T(1), {scores, stride_, true},
                  {rows.at(batch_, head_) + start * rows.row, std::max(rows.row, width)}, T(1),
                  to_table.at(batch_, head_) + low * to_table.row, std::max(to_table.row, width));
    });
  }

 private:
  const Call<T>& call_;
  const Lookup<T>& lookup_;
  const LookupGradients<T>& gradients_;
  bool is_query_;
  int64_t batch_, head_, first_, number_, stride_ = 0;
  T* data_ = nullptr;
};

// What one thread reuses from head to head.
template <typename T>
struct GradientSpace {
  std::vector<T> tiles, query_scores, key_scores, query_gradients, key_gradients;
};

// One head's gradients.
template <typename T>
class HeadGradient {
 public:
  HeadGradient(const Call<T>& call, const Gradients<T>& gradients, int64_t batch, int64_t head,
               GradientSpace<T>& space)
      : call_(call), gradients_(gradients), space_(space), batch_(batch), head_(head) {
    stride_ = std::min(kTileColumns, whole_blocks(call.keys));
    rows_ = std::min(kTileRows, whole_blocks(call.queries));
    space.tiles.resize(3 * rows_ * stride_ + call.queries);
    probs_ = space.tiles.data();
    grads_ = probs_ + rows_ * stride_;
    other_ = grads_ + rows_ * stride_;
    inner_ = other_ + rows_ * stride_;
  }

  void run(const Heads<const T>& out, const Heads<const T>& grad_out, const T* log_sum) {
    grad_out_ = grad_out.at(batch_, head_);
    grad_row_ = grad_out.row;
    log_sum_ = log_sum;
    const T* attended = out.at(batch_, head_);
    for (int64_t i = 0; i < call_.queries; ++i) {
      T sum = 0;
      const T *left = attended + i * out.row, *right = grad_out_ + i * grad_row_;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < call_.value_width; ++d) sum += left[d] * right[d];
      inner_[i] = sum;
    }
    const auto key_scores = score_rows(call_, false, batch_, head_, 0, call_.keys, space_.key_scores);
    const ScoreGradients<T> by_key(call_, gradients_, false, batch_, head_, 0, call_.keys,
                                   space_.key_gradients);
    for (int64_t query = 0; query < call_.queries; query += kTileRows) {
      const int64_t rows = std::min(kTileRows, call_.queries - query);
      const BlockBias<T> bias(call_, batch_, head_,
                              score_rows(call_, true, batch_, head_, query, rows, space_.query_scores),
                              key_scores);
      const ScoreGradients<T> by_query(call_, gradients_, true, batch_, head_, query, rows,
                                       space_.query_gradients);
      for (int64_t key = 0; key < call_.keys; key += kTileColumns) {
        const Tile tile{batch_, head_, query, rows, key, std::min(kTileColumns, call_.keys - key)};
        if (is_hidden(call_, tile)) continue;
        to_products(tile, bias);
        to_bias(tile, by_query, by_key);
      }
      by_query.finish();
    }
    by_key.finish();
  }

 private:
  // Adds to the gradients of values, queries and keys, and leaves those of the logits in `grads_`.
  void to_products(const Tile& tile, const BlockBias<T>& bias) {
    const int64_t width = call_.value_width;
    const T* grad_out = grad_out_ + tile.first_query * grad_row_;
    const Matrix<T> upstream{grad_out, std::max(grad_row_, width)};
    probabilities(tile, bias);
    const T* kept = probs_;
    if (call_.dropout > 0) {
      for (int64_t i = 0; i < tile.rows; ++i)
        std::copy_n(probs_ + i * stride_, tile.columns, other_ + i * stride_);
      drop(call_, tile, other_, stride_);
      kept = other_;
    }
    T* value = gradients_.value.at(batch_, head_) + tile.first_key * gradients_.value.row;
    multiply<T>(tile.columns, width, tile.rows, T(1), {kept, stride_, true}, upstream, T(1), value,
                std::max(gradients_.value.row, width));
    const T* values = call_.value.at(batch_, head_) + tile.first_key * call_.value.row;
    multiply<T>(tile.rows, tile.columns, width, T(1), upstream,
                {values, std::max(call_.value.row, width), true}, T(0), grads_, stride_);
    if (call_.dropout > 0) drop(call_, tile, grads_, stride_);
    for (int64_t i = 0; i < tile.rows; ++i) {
      const T inner = inner_[tile.first_query + i];
      T* row = grads_ + i * stride_;
      const T* probs = probs_ + i * stride_;
      for (int64_t j = 0; j < tile.columns; ++j) row[j] = probs[j] * (row[j] - inner);
    }
    to_query_and_key(tile);
  }

  void probabilities(const Tile& tile, const BlockBias<T>& bias) {
    logits(call_, bias, tile, probs_, stride_);
    for (int64_t i = 0; i < tile.rows; ++i) {
      const T reference = log_sum_[tile.first_query + i];
      T* row = probs_ + i * stride_;
      for (int64_t j = 0; j < tile.columns; ++j) row[j] = exponential(row[j] - reference);
    }
  }

  void to_query_and_key(const Tile& tile) {
    const int64_t width = call_.width;
    const T* query = call_.query.at(batch_, head_) + tile.first_query * call_.query.row;
    const T* key = call_.key.at(batch_, head_) + tile.first_key * call_.key.row;
    T* query_grad = gradients_.query.at(batch_, head_) + tile.first_query * gradients_.query.row;
    T* key_grad = gradients_.key.at(batch_, head_) + tile.first_key * gradients_.key.row;
    multiply<T>(tile.rows, width, tile.columns, call_.scale, {grads_, stride_},
                {key, std::max(call_.key.row, width)}, T(1), query_grad,
                std::max(gradients_.query.row, width));
    multiply<T>(tile.columns, width, tile.rows, call_.scale, {grads_, stride_, true},
                {query, std::max(call_.query.row, width)}, T(1), key_grad,
                std::max(gradients_.key.row, width));
  }

  void to_bias(const Tile& tile, const ScoreGradients<T>& by_query, const ScoreGradients<T>& by_key) {
    if (call_.places) {
      const int32_t* queries = call_.places->query.at(batch_) + tile.first_query;
      const int32_t* keys = call_.places->key.at(batch_) + tile.first_key;
      const int32_t* runs = call_.places->key.runs(batch_) + tile.first_key;
      if (call_.by_query.relation) {
        for (int64_t i = 0; i < tile.rows; ++i)
          sum_falling(*call_.by_query.relation, queries[i], keys, runs, tile.columns, grads_ + i * stride_,
                      by_query.row(tile.first_query + i));
      }
      if (gradients_.distance_scores) {
        const int64_t size = 2 * call_.reach + 1;
        T* target = gradients_.distance_scores + (batch_ * call_.heads + head_) * size;
        for (int64_t i = 0; i < tile.rows; ++i)
          sum_by_distance(call_.reach, queries[i], keys, runs, tile.columns, grads_ + i * stride_, target);
      }
      if (call_.by_key.relation) to_key_scores(tile, queries, keys, by_key);
    }
    if (gradients_.dense.data) to_dense(tile);
  }

  void to_key_scores(const Tile& tile, const int32_t* queries, const int32_t* keys,
                     const ScoreGradients<T>& by_key) {
    transpose(grads_, tile.rows, tile.columns, stride_, other_, rows_);
    const int32_t* runs = call_.places->query.runs(batch_) + tile.first_query;
    for (int64_t j = 0; j < tile.columns; ++j)
      sum_rising(*call_.by_key.relation, keys[j], queries, runs, tile.rows, other_ + j * rows_,
                 by_key.row(tile.first_key + j));
  }

  void to_dense(const Tile& tile) {
    const Pairs<T>& dense = gradients_.dense;
    T* target = dense.at(batch_, head_) + tile.first_query * dense.query + tile.first_key * dense.key;
    for (int64_t i = 0; i < tile.rows; ++i)
      for (int64_t j = 0; j < tile.columns; ++j)
        target[i * dense.query + j * dense.key] += grads_[i * stride_ + j];
  }

  const Call<T>& call_;
  const Gradients<T>& gradients_;
  GradientSpace<T>& space_;
  int64_t batch_, head_, stride_, rows_, grad_row_ = 0;
  T *probs_, *grads_, *other_, *inner_;
  const T *grad_out_ = nullptr, *log_sum_ = nullptr;
};

// Adds to the gradients, which start as zeros.
template <typename T>
void backward(const Call<T>& call, const Heads<const T>& out, const Heads<const T>& grad_out,
              const T* log_sum, const Gradients<T>& gradients) {
  at::parallel_for(0, call.batches * call.heads, 1, [&](int64_t begin, int64_t end) {
    GradientSpace<T> space;
    for (int64_t pair = begin; pair < end; ++pair)
      HeadGradient<T>(call, gradients, pair / call.heads, pair % call.heads, space)
          .run(out, grad_out, log_sum + pair * call.queries);
  });
}

}  // namespace posattn
