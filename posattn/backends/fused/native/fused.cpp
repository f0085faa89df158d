// The operators of backend `fused`: tensors in, tensors out; what they compute is in the headers.
#include <ATen/ops/empty.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "backward.h"
#include "forward.h"

namespace posattn {
namespace {

using at::Tensor;
using Maybe = std::optional<Tensor>;

// The tensors of one call under their names; the order is that of the schema.
struct Given {
  Tensor query, key, value;
  double scale;
  Maybe query_places, key_places, query_scores, query_row, key_scores, key_row, distance_scores, dense;
  Maybe seen_keys, query_documents, key_documents, limit_queries, limit_keys, limits, visible;
  double dropout;
  Maybe seed;
};

// Returns heads in the type of computation, each row contiguous and no two rows overlapping.
template <typename T>
Tensor numbers(const Tensor& tensor) {
  const Tensor exact = tensor.to(c10::CppTypeToScalarType<T>::value);
  const bool has_rows = exact.size(3) == 1 || exact.stride(3) == 1;
  const bool is_apart = exact.size(2) == 1 || exact.stride(2) >= exact.size(3);
  return has_rows && is_apart ? exact : exact.contiguous();
}

// A call that reads the given tensors, with the copies it keeps alive.
template <typename T>
struct Read {
  Call<T> call;
  std::vector<Tensor> kept;

  explicit Read(const Given& given) {
    const Tensor query = keep(numbers<T>(given.query)), key = keep(numbers<T>(given.key));
    const Tensor value = keep(numbers<T>(given.value));
    call.batches = query.size(0), call.heads = query.size(1), call.queries = query.size(2);
    call.keys = key.size(2), call.width = query.size(3), call.value_width = value.size(3);
    call.scale = static_cast<T>(given.scale);
    call.query = Heads<const T>(query), call.key = Heads<const T>(key), call.value = Heads<const T>(value);
    read_relations(given);
    if (given.dense) {
      call.dense = Pairs<const T>(keep(given.dense->to(c10::CppTypeToScalarType<T>::value)));
    }
    read_visibility(given);
    call.dropout = given.dropout;
    if (given.seed) call.seed = static_cast<uint64_t>(given.seed->item<int64_t>());
  }

  const Tensor& keep(Tensor tensor) { return kept.emplace_back(std::move(tensor)); }

  void read_relations(const Given& given) {
    if (given.query_places) call.places = Places{PerToken(*given.query_places), PerToken(*given.key_places)};
    if (given.query_scores) {
      call.query_scores = Heads<const T>(keep(numbers<T>(*given.query_scores)));
      call.query_relation = relation(*given.query_row, given.query_scores->size(3));
    }
    if (given.key_scores) {
      call.key_scores = Heads<const T>(keep(numbers<T>(*given.key_scores)));
      call.key_relation = relation(*given.key_row, given.key_scores->size(3));
    }
    if (given.distance_scores) {
      const Tensor scores = given.distance_scores->to(c10::CppTypeToScalarType<T>::value).contiguous();
      const int64_t size = scores.size(1);
      call.reach = (size - 1) / 2;
      const T* source = scores.template data_ptr<T>();
      call.distance_scores.resize(call.heads * size);
      for (int64_t h = 0; h < call.heads; ++h)
        std::reverse_copy(source + h * size, source + (h + 1) * size, call.distance_scores.begin() + h * size);
    }
  }

  Relation relation(const Tensor& row, int64_t num_buckets) {
    call.reach = (row.size(0) - 1) / 2;
    const Tensor whole = row.contiguous();
    return Relation(whole.data_ptr<int64_t>(), call.reach, num_buckets);
  }

  void read_visibility(const Given& given) {
    if (given.seen_keys) {
      const Tensor seen = given.seen_keys->contiguous();
      call.seen_batches = seen.size(0);
      call.seen_keys.assign(seen.data_ptr<bool>(), seen.data_ptr<bool>() + seen.numel());
    }
    if (given.query_documents)
      call.documents = Places{PerToken(*given.query_documents), PerToken(*given.key_documents)};
    if (given.limits) {
      const Tensor limits = given.limits->contiguous();
      call.limits = Limits{Places{PerToken(*given.limit_queries), PerToken(*given.limit_keys)}, {}, {}};
      for (int64_t h = 0; h < call.heads; ++h) {
        const int64_t* ends = limits.data_ptr<int64_t>() + (limits.size(0) == 1 ? 0 : h) * 2;
        call.limits->low.push_back(static_cast<int32_t>(ends[0]));
        call.limits->high.push_back(static_cast<int32_t>(ends[1]));
      }
    }
    if (given.visible) call.visible = Pairs<const bool>(*given.visible);
  }
};

// A new tensor whose memory has heads next to each other, as the projection after it wants them.
Tensor new_heads(const Tensor& like, int64_t length, int64_t width) {
  return at::empty({like.size(0), length, like.size(1), width}, like.options()).transpose(1, 2);
}

template <typename T>
std::tuple<Tensor, Tensor> run_forward(const Given& given) {
  const Read<T> read(given);
  const auto options = given.query.options().dtype(c10::CppTypeToScalarType<T>::value);
  const auto& call = read.call;
  const Tensor like = at::empty({call.batches, call.heads}, options);
  Tensor out = new_heads(like, call.queries, call.value_width);
  Tensor log_sum = at::empty({call.batches, call.heads, call.queries}, options);
  forward<T>(call, Heads<T>(out), log_sum.data_ptr<T>());
  return {out.to(given.query.scalar_type()), log_sum};
}

// Gradients of query, key, value, query_scores, key_scores, distance_scores and dense; empty where absent
// or not wanted.
template <typename T>
std::vector<Tensor> run_backward(const Given& given, const Tensor& out, const Tensor& log_sum,
                                 const Tensor& grad_out, bool wants_distance, bool wants_dense) {
  const Read<T> read(given);
  const auto& call = read.call;
  const auto options = given.query.options().dtype(c10::CppTypeToScalarType<T>::value);
  const auto empty = [&] { return at::empty({0}, options); };
  const Tensor attended = numbers<T>(out), upstream = numbers<T>(grad_out);
  const auto heads = [&](int64_t length, int64_t width) {
    return at::zeros({call.batches, length, call.heads, width}, options).transpose(1, 2);
  };
  std::vector<Tensor> made{heads(call.queries, call.width), heads(call.keys, call.width),
                           heads(call.keys, call.value_width)};
  Gradients<T> gradients{Heads<T>(made[0]), Heads<T>(made[1]), Heads<T>(made[2])};
  made.push_back(given.query_scores ? at::zeros(given.query_scores->sizes(), options) : empty());
  if (given.query_scores) gradients.query_scores = Heads<T>(made[3]);
  made.push_back(given.key_scores ? at::zeros(given.key_scores->sizes(), options) : empty());
  if (given.key_scores) gradients.key_scores = Heads<T>(made[4]);
  const int64_t distances = 2 * call.reach + 1;
  made.push_back(wants_distance ? at::zeros({call.batches, call.heads, distances}, options) : empty());
  if (wants_distance) gradients.distance_scores = made[5].template data_ptr<T>();
  made.push_back(wants_dense ? at::zeros({call.batches, call.heads, given.dense->size(2), given.dense->size(3)}, options)
                             : empty());
  if (wants_dense) gradients.dense = Pairs<T>(made[6]);
  backward<T>(call, Heads<const T>(attended), Heads<const T>(upstream), log_sum.data_ptr<T>(), gradients);
  if (wants_distance) made[5] = made[5].sum(0).flip({1});
  if (wants_dense) made[6] = at::sum_to(made[6], given.dense->sizes());
  const auto same = [](Tensor& gradient, const Tensor& like) { gradient = gradient.to(like.scalar_type()); };
  same(made[0], given.query), same(made[1], given.key), same(made[2], given.value);
  if (given.query_scores) same(made[3], *given.query_scores);
  if (given.key_scores) same(made[4], *given.key_scores);
  if (wants_distance) same(made[5], *given.distance_scores);
  if (wants_dense) same(made[6], *given.dense);
  return made;
}

#define POSATTN_ARGUMENTS                                                                                    \
  const Tensor &query, const Tensor &key, const Tensor &value, double scale, const Maybe &query_places,      \
      const Maybe &key_places, const Maybe &query_scores, const Maybe &query_row, const Maybe &key_scores,   \
      const Maybe &key_row, const Maybe &distance_scores, const Maybe &dense, const Maybe &seen_keys,        \
      const Maybe &query_documents, const Maybe &key_documents, const Maybe &limit_queries,                  \
      const Maybe &limit_keys, const Maybe &limits, const Maybe &visible, double dropout, const Maybe &seed
#define POSATTN_GIVEN                                                                                        \
  Given {                                                                                                    \
    query, key, value, scale, query_places, key_places, query_scores, query_row, key_scores, key_row,        \
        distance_scores, dense, seen_keys, query_documents, key_documents, limit_queries, limit_keys,        \
        limits, visible, dropout, seed                                                                       \
  }

std::tuple<Tensor, Tensor> attention(POSATTN_ARGUMENTS) {
  const Given given = POSATTN_GIVEN;
  return query.scalar_type() == at::kDouble ? run_forward<double>(given) : run_forward<float>(given);
}

std::vector<Tensor> attention_backward(POSATTN_ARGUMENTS, const Tensor& out, const Tensor& log_sum,
                                       const Tensor& grad_out, bool wants_distance, bool wants_dense) {
  const Given given = POSATTN_GIVEN;
  const auto run = query.scalar_type() == at::kDouble ? run_backward<double> : run_backward<float>;
  return run(given, out, log_sum, grad_out, wants_distance, wants_dense);
}

}  // namespace
}  // namespace posattn

#define POSATTN_SCHEMA                                                                                       \
  "Tensor query, Tensor key, Tensor value, float scale, Tensor? query_places, Tensor? key_places, "          \
  "Tensor? query_scores, Tensor? query_row, Tensor? key_scores, Tensor? key_row, Tensor? distance_scores, "  \
  "Tensor? dense, Tensor? seen_keys, Tensor? query_documents, Tensor? key_documents, "                       \
  "Tensor? limit_queries, Tensor? limit_keys, Tensor? limits, Tensor? visible, float dropout, Tensor? seed"

TORCH_LIBRARY(posattn, library) {
  library.def("fused_attention(" POSATTN_SCHEMA ") -> (Tensor, Tensor)");
  library.def("fused_attention_backward(" POSATTN_SCHEMA
              ", Tensor out, Tensor log_sum, Tensor grad_out, bool wants_distance, bool wants_dense) -> Tensor[]");
}

TORCH_LIBRARY_IMPL(posattn, CPU, library) {
  library.impl("fused_attention", posattn::attention);
  library.impl("fused_attention_backward", posattn::attention_backward);
}
