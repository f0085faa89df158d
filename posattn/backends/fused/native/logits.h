// What is added to the products of a tile, and what of it is hidden.
#pragma once

#include "block.h"
#include "call.h"
#include "numbers.h"

namespace posattn {

// One head's scores by bucket: those of token i start at data + i * stride.
template <typename T>
struct ScoreRows {
  const T* data = nullptr;
  int64_t stride = 0;
};

inline int64_t whole_blocks(int64_t length) { return (length + kBlock - 1) / kBlock * kBlock; }

constexpr int64_t kProductRows = 128;

// Calls `use(first, number, low, high)` for groups of tokens with the buckets that each can reach.
template <typename T, typename Use>
void by_group(const Call<T>& call, bool is_query, int64_t batch, int64_t first, int64_t number, Use&& use) {
  for (int64_t start = first; start < first + number; start += kProductRows) {
    const int64_t size = std::min(kProductRows, first + number - start);
    const auto [low, high] = call.reachable(is_query, batch, start, size);
    use(start, size, low, high);
  }
}

// Returns the scores of `number` queries (or keys) from `first` on; products are multiplied in `space`.
template <typename T>
ScoreRows<T> score_rows(const Call<T>& call, bool is_query, int64_t batch, int64_t head, int64_t first,
                        int64_t number, std::vector<T>& space) {
  const Lookup<T>& lookup = is_query ? call.by_query : call.by_key;
  if (!lookup.relation) return {};
  if (!lookup.is_product()) return {lookup.scores.at(batch, head), lookup.scores.row};
  const int64_t stride = whole_blocks(lookup.relation->num_buckets()), width = lookup.width;
  space.resize(number * stride);
  T* scores = space.data() - first * stride;
  const int64_t row_stride = std::max(lookup.rows.row, width), table_stride = std::max(lookup.table.row, width);
  by_group(call, is_query, batch, first, number, [&](int64_t start, int64_t size, int64_t low, int64_t high) {
    multiply<T>(size, high - low + 1, width, T(1),
                {lookup.rows.at(batch, head) + start * lookup.rows.row, row_stride},
                {lookup.table.at(batch, head) + low * lookup.table.row, table_stride, true}, T(0),
                scores + start * stride + low, stride);
  });
  return {scores, stride};
}

// The biases of 16 x 16 pairs (fewer at the edges), added up in `sum`.
template <typename T>
class BlockBias {
 public:
  BlockBias(const Call<T>& call, int64_t batch, int64_t head, ScoreRows<T> by_query, ScoreRows<T> by_key)
      : call_(call),
        batch_(batch),
        query_scores_(by_query.data),
        key_scores_(by_key.data),
        query_stride_(by_query.stride),
        key_stride_(by_key.stride),
        distance_scores_(call.distance_scores.empty() ? nullptr
                                                      : call.distance_scores.data() + head * (2 * call.reach + 1)),
        query_places_(call.places ? call.places->query.at(batch) : nullptr),
        key_places_(call.places ? call.places->key.at(batch) : nullptr) {}

  bool exists() const { return call_.places.has_value(); }

  // Adds the biases of the block at (query, key) to `target`.
  void add(int64_t query, int64_t rows, int64_t key, int64_t columns, T* target, int64_t stride) const {
    if (rows == kBlock && columns == kBlock && is_regular(query, key)) {
      add_regular(query, key, query_places_[query] - key_places_[key], target, stride);
    } else {
      add_each(query, rows, key, columns, target, stride);
    }
  }

  // Whether distances in the block differ by place alone and every lookup is narrow.
  bool is_regular(int64_t query, int64_t key) const {
    const Places& places = *call_.places;
    const int64_t distance = query_places_[query] - key_places_[key];
    return places.query.runs(batch_)[query] >= kBlock && places.key.runs(batch_)[key] >= kBlock &&
           distance - kBlock + 1 >= -call_.reach && distance + kBlock - 1 <= call_.reach &&
           (!query_scores_ || call_.by_query.relation->is_narrow()) &&
           (!key_scores_ || call_.by_key.relation->is_narrow());
  }

 private:
  void add_regular(int64_t query, int64_t key, int64_t distance, T* target, int64_t stride) const {
    alignas(64) T sum[kBlock * kBlock];
    const int64_t low = distance - kBlock + 1, high = distance + kBlock - 1;
    start_by_query(query, distance, low, high, sum);
    if (key_scores_) add_by_key(key, distance, low, high, sum);
    for (int64_t i = 0; i < kBlock; ++i) {
      T* row = target + i * stride;
      const T* more = sum + i * kBlock;
      if (distance_scores_) {
        const T* by_distance = distance_scores_ + call_.reach - (distance + i);
        for (int64_t j = 0; j < kBlock; ++j) row[j] += more[j] + by_distance[j];
      } else {
        for (int64_t j = 0; j < kBlock; ++j) row[j] += more[j];
      }
    }
  }

  void start_by_query(int64_t query, int64_t distance, int64_t low, int64_t high, T* sum) const {
    if (!query_scores_) {
      std::fill(sum, sum + kBlock * kBlock, T(0));
      return;
    }
    const Relation& relation = *call_.by_query.relation;
    const T* scores = query_scores_ + query * query_stride_;
    if (relation.is_constant(low, high)) {
      scores += relation.bucket(distance);
      for (int64_t i = 0; i < kBlock; ++i)
        std::fill(sum + i * kBlock, sum + (i + 1) * kBlock, scores[i * query_stride_]);
      return;
    }
    for (int64_t i = 0; i < kBlock; ++i) {
      const Window& window = relation.rising(distance + i - kBlock + 1);
      pick<true>(scores + i * query_stride_ + window.first, relation.num_buckets() - window.first,
                 window, sum + i * kBlock);
    }
  }

  void add_by_key(int64_t key, int64_t distance, int64_t low, int64_t high, T* sum) const {
    const Relation& relation = *call_.by_key.relation;
    const T* scores = key_scores_ + key * key_stride_;
    alignas(64) T column[kBlock * kBlock];
    if (relation.is_constant(low, high)) {
      scores += relation.bucket(distance);
      for (int64_t j = 0; j < kBlock; ++j) column[j] = scores[j * key_stride_];
      for (int64_t i = 0; i < kBlock; ++i)
        for (int64_t j = 0; j < kBlock; ++j) sum[i * kBlock + j] += column[j];
      return;
    }
    for (int64_t j = 0; j < kBlock; ++j) {
      const Window& window = relation.rising(distance - j);
      pick<false>(scores + j * key_stride_ + window.first, relation.num_buckets() - window.first,
                  window, column + j * kBlock);
    }
    add_transposed(column, sum);
  }

  void add_each(int64_t query, int64_t rows, int64_t key, int64_t columns, T* target, int64_t stride) const {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        const int64_t distance = query_places_[query + i] - key_places_[key + j];
        T sum = 0;
        if (query_scores_)
          sum += query_scores_[(query + i) * query_stride_ + call_.by_query.relation->bucket(distance)];
        if (key_scores_)
          sum += key_scores_[(key + j) * key_stride_ + call_.by_key.relation->bucket(distance)];
        if (distance_scores_)
          sum += distance_scores_[call_.reach - std::clamp(distance, -call_.reach, call_.reach)];
        target[i * stride + j] += sum;
      }
    }
  }

  const Call<T>& call_;
  int64_t batch_;
  const T *query_scores_, *key_scores_;
  int64_t query_stride_, key_stride_;
  const T* distance_scores_;
  const int32_t *query_places_, *key_places_;
};

// Adds the bias that is given for all pairs.
template <typename T>
void add_dense(const Call<T>& call, const Tile& tile, T* target, int64_t stride) {
  const Pairs<const T>& dense = call.dense;
  const T* source = dense.at(tile.batch, tile.head) + tile.first_query * dense.query + tile.first_key * dense.key;
  for (int64_t i = 0; i < tile.rows; ++i) {
    T* row = target + i * stride;
    const T* more = source + i * dense.query;
    if (dense.key == 1) {
      for (int64_t j = 0; j < tile.columns; ++j) row[j] += more[j];
    } else {
      for (int64_t j = 0; j < tile.columns; ++j) row[j] += more[j * dense.key];
    }
  }
}

// Puts minus infinity where the query does not see the key.
template <typename T>
void hide(const Call<T>& call, const Tile& tile, T* target, int64_t stride) {
  const auto each_row = [&](auto&& update) {
    for (int64_t i = 0; i < tile.rows; ++i) update(tile.first_query + i, target + i * stride);
  };
  const int64_t columns = tile.columns;
  if (!call.seen_keys.empty()) {
    const char* seen = call.seen_keys.data() + (call.seen_batches == 1 ? 0 : tile.batch) * call.keys + tile.first_key;
    if (std::find(seen, seen + columns, 0) != seen + columns)
      each_row([&](int64_t, T* row) {
        for (int64_t j = 0; j < columns; ++j) row[j] = seen[j] ? row[j] : kLowest<T>;
      });
  }
  if (call.documents) {
    const int32_t* queries = call.documents->query.at(tile.batch);
    const int32_t* keys = call.documents->key.at(tile.batch) + tile.first_key;
    each_row([&](int64_t i, T* row) {
      const int32_t own = queries[i];
      for (int64_t j = 0; j < columns; ++j) row[j] = keys[j] == own ? row[j] : kLowest<T>;
    });
  }
  if (call.limits) {
    const int32_t* queries = call.limits->places.query.at(tile.batch);
    const int32_t* keys = call.limits->places.key.at(tile.batch) + tile.first_key;
    const int32_t low = call.limits->low[tile.head], high = call.limits->high[tile.head];
    each_row([&](int64_t i, T* row) {
      const int32_t nearest = queries[i] - high, furthest = queries[i] - low;
      for (int64_t j = 0; j < columns; ++j)
        row[j] = keys[j] >= nearest && keys[j] <= furthest ? row[j] : kLowest<T>;
    });
  }
  if (call.visible.data) {
    const auto& visible = call.visible;
    const bool* source = visible.at(tile.batch, tile.head) + tile.first_key * visible.key;
    each_row([&](int64_t i, T* row) {
      const bool* seen = source + i * visible.query;
      for (int64_t j = 0; j < columns; ++j) row[j] = seen[j * visible.key] ? row[j] : kLowest<T>;
    });
  }
}

// Whether no query of the tile can see any of its keys, told from smallest and largest values.
template <typename T>
bool is_hidden(const Call<T>& call, const Tile& tile) {
  if (call.documents) {
    const auto [query_low, query_high] = ends(call.documents->query, tile.batch, tile.first_query, tile.rows);
    const auto [key_low, key_high] = ends(call.documents->key, tile.batch, tile.first_key, tile.columns);
    if (query_high < key_low || key_high < query_low) return true;
  }
  if (call.limits) {
    const auto [query_low, query_high] = ends(call.limits->places.query, tile.batch, tile.first_query, tile.rows);
    const auto [key_low, key_high] = ends(call.limits->places.key, tile.batch, tile.first_key, tile.columns);
    if (query_low - key_high > call.limits->high[tile.head] || query_high - key_low < call.limits->low[tile.head])
      return true;
  }
  return false;
}

// Writes the logits of a tile: products, biases, minus infinity where hidden.
template <typename T>
void logits(const Call<T>& call, const BlockBias<T>& bias, const Tile& tile, T* target, int64_t stride) {
  const T* query = call.query.at(tile.batch, tile.head) + tile.first_query * call.query.row;
  const T* key = call.key.at(tile.batch, tile.head) + tile.first_key * call.key.row;
  multiply<T>(tile.rows, tile.columns, call.width, call.scale, {query, std::max(call.query.row, call.width)},
              {key, std::max(call.key.row, call.width), true}, T(0), target, stride);
  if (bias.exists()) {
    for (int64_t i = 0; i < tile.rows; i += kBlock)
      for (int64_t j = 0; j < tile.columns; j += kBlock)
        bias.add(tile.first_query + i, std::min(kBlock, tile.rows - i), tile.first_key + j,
                 std::min(kBlock, tile.columns - j), target + i * stride + j, stride);
  }
  if (call.dense.data) add_dense(call, tile, target, stride);
  if (call.hides()) hide(call, tile, target, stride);
}

}  // namespace posattn
