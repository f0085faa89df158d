// A function of the distance, with what makes looking it up by blocks of 16 pairs cheap.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace posattn {

constexpr int64_t kBlock = 16;

// Which of 16 neighbouring scores 16 consecutive distances read: score[first + lane[i]]. `last[k]` is the
// last of the distances whose lane is at most k, -1 if there is none.
struct Window {
  int32_t first;
  uint8_t lane[kBlock];
  int8_t last[kBlock];
};

// row[distance + reach] is the bucket. `falling[t]` serves distances t, t - 1, ..; `rising[t]` t, t + 1, ..
// They exist where every such 16 buckets are within 16 neighbours (`is_narrow`): all monotone maps that
// step by at most one.
class Relation {
 public:
  Relation(const int64_t* row, int64_t reach, int64_t num_buckets)
      : reach_(reach), row_(row, row + 2 * reach + 1), num_buckets_(num_buckets) {
    const int64_t size = 2 * reach + 1;
    run_begin_.resize(size);
    run_end_.resize(size);
    for (int64_t t = 0; t < size; ++t) run_begin_[t] = t > 0 && row_[t] == row_[t - 1] ? run_begin_[t - 1] : t;
    for (int64_t t = size - 1; t >= 0; --t)
      run_end_[t] = t + 1 < size && row_[t] == row_[t + 1] ? run_end_[t + 1] : t;
    ramp_begin_.resize(size);
    ramp_end_.resize(size);
    for (int64_t t = 0; t < size; ++t)
      ramp_begin_[t] = t > 0 && row_[t] == row_[t - 1] + 1 ? ramp_begin_[t - 1] : t;
    for (int64_t t = size - 1; t >= 0; --t)
      ramp_end_[t] = t + 1 < size && row_[t + 1] == row_[t] + 1 ? ramp_end_[t + 1] : t;
    if (size < kBlock) return;
    windows_.resize(size - kBlock + 1);
    for (int64_t low = 0; low + kBlock <= size; ++low) {
      if (!fill(low)) {
        is_narrow_ = false;
        return;
      }
    }
    is_narrow_ = true;
    is_rising_ = std::is_sorted(row_.begin(), row_.end());
  }

  bool is_narrow() const { return is_narrow_; }
  bool is_rising() const { return is_rising_; }  // and narrow
  int64_t reach() const { return reach_; }
  int64_t num_buckets() const { return num_buckets_; }
  int32_t bucket(int64_t distance) const { return row_[clamped(distance)]; }

  // The smallest and the largest bucket of the distances from `low` to `high`.
  std::pair<int64_t, int64_t> buckets(int64_t low, int64_t high) const {
    const auto [least, most] =
        std::minmax_element(row_.begin() + clamped(low), row_.begin() + clamped(high) + 1);
    return {*least, *most};
  }

  // Whether all distances from `low` to `high` share one bucket.
  bool is_constant(int64_t low, int64_t high) const { return run_end_[clamped(low)] >= clamped(high); }

  // How many distances from this one down, or up, share its bucket.
  int64_t alike_below(int64_t distance) const {
    return std::max<int64_t>(distance + reach_ - run_begin_[clamped(distance)] + 1, 1);
  }
  int64_t alike_above(int64_t distance) const {
    return std::max<int64_t>(run_end_[clamped(distance)] - reach_ - distance + 1, 1);
  }
  // How many distances from this one down, or up, have buckets that change by one each.
  int64_t stepping_below(int64_t distance) const {
    if (!holds(distance)) return 1;
    return distance + reach_ - ramp_begin_[distance + reach_] + 1;
  }
  int64_t stepping_above(int64_t distance) const {
    if (!holds(distance)) return 1;
    return ramp_end_[distance + reach_] - distance - reach_ + 1;
  }
  bool holds(int64_t distance) const { return distance >= -reach_ && distance <= reach_; }

  // The windows of the 16 distances from `low` up, in rising order of distance.
  const Window& rising(int64_t low) const { return windows_[low + reach_]; }

 private:
  int64_t clamped(int64_t distance) const {
    return std::min(std::max<int64_t>(distance + reach_, 0), 2 * reach_);
  }

  bool fill(int64_t low) {
    Window& window = windows_[low];
    const auto begin = row_.begin() + low;
    const auto [least, most] = std::minmax_element(begin, begin + kBlock);
    window.first = std::max<int32_t>(0, std::min<int64_t>(*least, num_buckets_ - kBlock));
    if (*most - window.first >= kBlock) return false;
    for (int64_t i = 0; i < kBlock; ++i) window.lane[i] = static_cast<uint8_t>(begin[i] - window.first);
    for (int64_t k = 0; k < kBlock; ++k)
      window.last[k] = static_cast<int8_t>(std::count_if(window.lane, window.lane + kBlock,
                                                         [&](uint8_t lane) { return lane <= k; }) - 1);
    return true;
  }

  int64_t reach_;
  std::vector<int32_t> row_, run_begin_, run_end_, ramp_begin_, ramp_end_;
  int64_t num_buckets_;
  std::vector<Window> windows_;
  bool is_narrow_ = false, is_rising_ = false;
};

}  // namespace posattn
