// One attention call as the loops read it: pointers, strides, and what depends on positions alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <vector>

#include "relation.h"

namespace posattn {

constexpr int64_t kFar = int64_t{1} << 30;

// Heads of one tensor: [batch, heads, length, width], the last axis contiguous; size-1 axes broadcast.
template <typename T>
struct Heads {
  T* data = nullptr;
  int64_t batch = 0, head = 0, row = 0;

  Heads() = default;
  explicit Heads(const at::Tensor& tensor)
      : data(tensor.data_ptr<std::remove_const_t<T>>()),
        batch(tensor.size(0) == 1 ? 0 : tensor.stride(0)),
        head(tensor.size(1) == 1 ? 0 : tensor.stride(1)),
        row(tensor.size(2) == 1 ? 0 : tensor.stride(2)) {}
  T* at(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

// A tensor of all pairs [#batch, #heads, #query, #key] with any strides.
template <typename T>
struct Pairs {
  T* data = nullptr;
  int64_t batch = 0, head = 0, query = 0, key = 0;

  Pairs() = default;
  explicit Pairs(const at::Tensor& tensor) : data(tensor.data_ptr<std::remove_const_t<T>>()) {
    const auto stride = [&](int axis) { return tensor.size(axis) == 1 ? 0 : tensor.stride(axis); };
    batch = stride(0), head = stride(1), query = stride(2), key = stride(3);
  }
  T* at(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

// Integers of each token, [#batch, length]; `follow` says how many from a token on rise by one each.
struct PerToken {
  std::vector<int32_t> values, follow;
  int64_t length = 0, batches = 0;

  PerToken() = default;
  explicit PerToken(const at::Tensor& tensor) : length(tensor.size(1)), batches(tensor.size(0)) {
    const at::Tensor whole = tensor.contiguous();
    const int64_t* source = whole.data_ptr<int64_t>();
    values.assign(source, source + batches * length);
    follow.assign(batches * length, 1);
    for (int64_t b = 0; b < batches; ++b)
      for (int64_t i = b * length + length - 2; i >= b * length; --i)
        if (values[i + 1] == values[i] + 1) follow[i] = follow[i + 1] + 1;
  }
  const int32_t* at(int64_t b) const { return values.data() + (batches == 1 ? 0 : b * length); }
  const int32_t* runs(int64_t b) const { return follow.data() + (batches == 1 ? 0 : b * length); }
};

// The smallest and the largest of some tokens' integers.
inline std::pair<int64_t, int64_t> ends(const PerToken& tokens, int64_t batch, int64_t first, int64_t number) {
  const int32_t* values = tokens.at(batch) + first;
  const auto [low, high] = std::minmax_element(values, values + number);
  return {*low, *high};
}

// Places of queries and keys between which distances are taken.
struct Places {
  PerToken query, key;
};

// A key is seen if its distance is between the head's limits, inclusive.
struct Limits {
  Places places;
  std::vector<int32_t> low, high;  // by head
};

// Scores of each token by bucket, given as they are or as products of rows with a table [heads, buckets].
template <typename T>
struct Lookup {
  std::optional<Relation> relation;
  Heads<const T> scores, rows, table;
  int64_t width = 0;

  bool is_product() const { return table.data != nullptr; }
};

template <typename T>
struct Call {
  int64_t batches, heads, queries, keys, width, value_width;
  T scale;
  Heads<const T> query, key, value;

  std::optional<Places> places;  // for the relations
  Lookup<T> by_query, by_key;
  std::vector<T> distance_scores;           // [heads, 2 reach + 1], reversed: for distances reach .. -reach
  int64_t reach = 0;
  Pairs<const T> dense;

  std::vector<char> seen_keys;  // [batch, key]; empty: all
  int64_t seen_batches = 0;
  std::optional<Places> documents;
  std::optional<Limits> limits;
  Pairs<const bool> visible;

  double dropout = 0.0;
  uint64_t seed = 0;

  // The first and the last bucket that `number` queries, or keys, from `first` on can look up.
  std::pair<int64_t, int64_t> reachable(bool is_query, int64_t batch, int64_t first, int64_t number) const {
    const auto& [by, own, other] = is_query ? std::tie(by_query, places->query, places->key)
                                            : std::tie(by_key, places->key, places->query);
    const auto [own_low, own_high] = ends(own, batch, first, number);
    const auto [other_low, other_high] = ends(other, batch, 0, other.length);
    return is_query ? by.relation->buckets(own_low - other_high, own_high - other_low)
                    : by.relation->buckets(other_low - own_high, other_high - own_low);
  }

  bool hides() const { return !seen_keys.empty() || documents || limits || visible.data; }
};

// A part of one head's logits: `rows` queries from `first_query`, `columns` keys from `first_key`.
struct Tile {
  int64_t batch, head, first_query, rows, first_key, columns;
};

}  // namespace posattn
