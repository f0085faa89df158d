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
  Maybe query_places, key_places;
  Maybe query_scores, query_rows, query_table, query_buckets, key_scores, key_rows, key_table, key_buckets;
  Maybe distance_scores, dense;
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
    read_lookup(call.by_query, given.query_scores, given.query_rows, given.query_table, given.query_buckets);
    read_lookup(call.by_key, given.key_scores, given.key_rows, given.key_table, given.key_buckets);
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

  void read_lookup(Lookup<T>& lookup, const Maybe& scores, const Maybe& rows, const Maybe& table,
                   const Maybe& buckets) {
    if (!buckets) return;
    if (scores) {
      lookup.scores = Heads<const T>(keep(numbers<T>(*scores)));
    } else {
      lookup.rows = Heads<const T>(keep(numbers<T>(*rows)));
      lookup.table = Heads<const T>(keep(numbers<T>(table->unsqueeze(0))));
      lookup.width = rows->size(3);
    }
    call.reach = (buckets->size(0) - 1) / 2;
    const Tensor whole = buckets->contiguous();
    const int64_t num_buckets = scores ? scores->size(3) : table->size(1);
    lookup.relation.emplace(whole.data_ptr<int64_t>(), call.reach, num_buckets);
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

// Returns gradients of what may be learned, in the order of the schema; empty where absent or not wanted.
template <typename T>
std::vector<Tensor> run_backward(const Given& given, const Tensor& out, const Tensor& log_sum,
                                 const Tensor& grad_out, bool wants_distance, bool wants_dense) {
  const Read<T> read(given);
  const auto& call = read.call;
  const auto options = given.query.options().dtype(c10::CppTypeToScalarType<T>::value);
  const Tensor attended = numbers<T>(out), upstream = numbers<T>(grad_out);
  std::vector<Tensor> made;
  const auto heads = [&](const Maybe& like) {  // in memory heads are next to each other
    made.push_back(like ? at::zeros({like->size(0), like->size(2), like->size(1), like->size(3)}, options).transpose(1, 2)
                        : at::empty({0}, options));
    return like ? Heads<T>(made.back()) : Heads<T>();
  };
  const auto table = [&](const Maybe& like) {
    made.push_back(like ? at::zeros({call.batches, call.heads, like->size(1), like->size(2)}, options)
                        : at::empty({0}, options));
    return like ? Heads<T>(made.back()) : Heads<T>();
  };
  Gradients<T> gradients{heads(given.query), heads(given.key), heads(given.value)};
  gradients.by_query = {heads(given.query_scores), heads(given.query_rows), table(given.query_table)};
  gradients.by_key = {heads(given.key_scores), heads(given.key_rows), table(given.key_table)};
  const int64_t distances = 2 * call.reach + 1;
  made.push_back(at::zeros({wants_distance ? call.batches : 0, call.heads, distances}, options));
  if (wants_distance) gradients.distance_scores = made.back().template data_ptr<T>();
  const auto dense = [&](int axis) { return wants_dense ? given.dense->size(axis) : 0; };
  made.push_back(at::zeros({call.batches, call.heads, dense(2), dense(3)}, options));
  if (wants_dense) gradients.dense = Pairs<T>(made.back());
  backward<T>(call, Heads<const T>(attended), Heads<const T>(upstream), log_sum.data_ptr<T>(), gradients);

  const Maybe learned[] = {given.query, given.key, given.value, given.query_scores, given.query_rows,
                           given.query_table, given.key_scores, given.key_rows, given.key_table,
                           wants_distance ? given.distance_scores : Maybe(), wants_dense ? given.dense : Maybe()};
  if (wants_distance) made[9] = made[9].flip({2});
  for (size_t i = 0; i < made.size(); ++i) {
    made[i] = learned[i] ? at::sum_to(made[i], learned[i]->sizes()).to(learned[i]->scalar_type())
                         : at::empty({0}, options);
  }
  return made;
}

#define POSATTN_ARGUMENTS                                                                                    \
  const Tensor &query, const Tensor &key, const Tensor &value, double scale, const Maybe &query_places,      \
      const Maybe &key_places, const Maybe &query_scores, const Maybe &query_rows, const Maybe &query_table, \
      const Maybe &query_buckets, const Maybe &key_scores, const Maybe &key_rows, const Maybe &key_table,    \
      const Maybe &key_buckets, const Maybe &distance_scores, const Maybe &dense, const Maybe &seen_keys,    \
      const Maybe &query_documents, const Maybe &key_documents, const Maybe &limit_queries,                  \
      const Maybe &limit_keys, const Maybe &limits, const Maybe &visible, double dropout, const Maybe &seed
#define POSATTN_GIVEN                                                                                        \
  Given {                                                                                                    \
    query, key, value, scale, query_places, key_places, query_scores, query_rows, query_table,               \
        query_buckets, key_scores, key_rows, key_table, key_buckets, distance_scores, dense, seen_keys,      \
        query_documents, key_documents, limit_queries, limit_keys, limits, visible, dropout, seed            \
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
  "Tensor? query_scores, Tensor? query_rows, Tensor? query_table, Tensor? query_buckets, "                   \
  "Tensor? key_scores, Tensor? key_rows, Tensor? key_table, Tensor? key_buckets, Tensor? distance_scores, "  \
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
