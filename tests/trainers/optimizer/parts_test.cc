// The parts of an optimizer, each by itself.
#include <limits>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/exchange/gradient_parts.h>
#include <sotto/optim/step_rule.h>

#include "../../../trainers/internal/optimizer/compression_watch.h"
#include "../../../trainers/internal/optimizer/step_settings.h"
#include "../../../trainers/internal/optimizer/whole_model.h"
#include "../../../trainers/internal/optimizer/work_before.h"

namespace sotto::test::parts_test {

using namespace sotto::internal;

namespace {

constexpr double kAgreedRate = 0.1;

std::unique_ptr<StepRule> plain_rule() {
  auto rule = make_step_rule({.learning_rate = kAgreedRate});
  rule->resize(complete_layout({}, 1));
  return rule;
}

/// Settings that are saved by `from` and taken back by settings of a new run.
double rate_after_load(const StepSettings& from) {
  ByteBuffer saved;
  from.save(saved);
  const auto rule = plain_rule();
  StepSettings again(*rule, kAgreedRate);
  ByteReader in(saved.bytes());
  CHECK(again.load(in).ok());
  CHECK(in.finished());
  return again.rate();
}

}  // namespace

TEST_CASE("step settings: frames say a rate once it is another one than was agreed") {
  const auto rule = plain_rule();
  StepSettings settings(*rule, kAgreedRate);
  CHECK(settings.rate() == kAgreedRate);
  CHECK(settings.stamp() == kAsAgreed);
  settings.set_rate(0.5);
  CHECK(settings.rate() == 0.5);
  CHECK(settings.stamp() == stamp_of_rate(0.5));
  settings.set_rate(kAgreedRate);
  CHECK(settings.stamp() == kAsAgreed);
  for (const double none : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS(settings.set_rate(none), doctest::Contains("lr"), Error);
    CHECK(settings.rate() == kAgreedRate);
  }
}

TEST_CASE("step settings: what a caller announces of its own rule is stamped, and not saved") {
  const auto rule = plain_rule();
  StepSettings settings(*rule, kAgreedRate);
  settings.announce(0.3, "");
  CHECK(settings.rate() == 0.3);
  CHECK(settings.stamp() == stamp_of_rate(0.3));
  settings.announce(0.3, "momentum=0.5");
  const SettingsStamp one = settings.stamp();
  settings.announce(0.3, "momentum=0.6");
  CHECK(one != kAsAgreed);
  CHECK(settings.stamp() != one);
  const SettingsStamp another = settings.stamp();
  CHECK_THROWS_AS(settings.announce(std::numeric_limits<double>::quiet_NaN(), ""), Error);
  CHECK_THROWS_AS(settings.announce(-1, ""), Error);
  CHECK(settings.stamp() == another);
  CHECK(rate_after_load(settings) == kAgreedRate);
}

TEST_CASE("step settings: a changed rate goes on after a load, and damage is refused") {
  const auto rule = plain_rule();
  StepSettings settings(*rule, kAgreedRate);
  CHECK(rate_after_load(settings) == kAgreedRate);
  settings.set_rate(0.25);
  CHECK(rate_after_load(settings) == 0.25);

  ByteBuffer untouched;
  StepSettings(*rule, kAgreedRate).save(untouched);
  ByteReader back(untouched.bytes());
  CHECK(settings.load(back).ok());
  CHECK(settings.rate() == kAgreedRate);  // which had not been changed when it was saved

  ByteReader nothing(untouched.bytes().first(3));
  CHECK(settings.load(nothing).fault() == Fault::malformed);
  ByteBuffer wrong;
  wrong.write(std::uint8_t{1});
  wrong.write(-2.0);
  ByteReader in(wrong.bytes());
  CHECK(settings.load(in).fault() == Fault::malformed);
}

TEST_CASE("gradient parts: they add up, and none may overlap another") {
  GradientParts parts;
  CHECK(parts.empty());
  parts.add(10, 5);
  parts.add(0, 4);
  parts.add(7, 0);  // nothing
  CHECK(parts.elements() == 9);
  CHECK(parts.overlap(3, 1));
  CHECK_FALSE(parts.overlap(4, 6));
  CHECK(parts.overlap(4, 7));
  CHECK(parts.overlap(14, 1));
  CHECK_FALSE(parts.overlap(15, 100));
  CHECK(parts.overlap(12, 1));
  CHECK(parts.overlap(0, 100));
  parts.add(4, 3);  // 0 to 7, and 10 to 15, are there
  CHECK(parts.cover(0, 7));
  CHECK(parts.cover(2, 3));
  CHECK(parts.cover(11, 4));
  CHECK(parts.cover(8, 0));
  CHECK_FALSE(parts.cover(0, 8));
  CHECK_FALSE(parts.cover(6, 6));
  CHECK_FALSE(parts.cover(8, 1));
  CHECK_FALSE(parts.cover(9, 3));
  CHECK_FALSE(parts.cover(14, 2));
  parts.clear();
  CHECK_FALSE(parts.cover(0, 1));
  CHECK(parts.empty());
  CHECK_FALSE(parts.overlap(0, 100));
}

TEST_CASE("gradient parts: what is outside or twice there is refused") {
  GradientParts parts;
  CHECK_NOTHROW(parts.require(0, 10, 10));
  CHECK_NOTHROW(parts.require(10, 0, 10));
  CHECK_THROWS_AS(parts.require(10, 1, 10), Error);
  CHECK_THROWS_AS(parts.require(11, 0, 10), Error);
  CHECK_THROWS_AS(parts.require(1, std::numeric_limits<std::size_t>::max(), 10), Error);
  parts.add(2, 3);
  CHECK_THROWS_AS(parts.require(4, 1, 10), Error);
  CHECK_NOTHROW(parts.require(5, 5, 10));
  CHECK_THROWS_AS(parts.require_all(10), Error);
  CHECK_NOTHROW(parts.require_all(3));
}

TEST_CASE("whole model: the parameters, and behind them what goes along") {
  std::vector<float> parameters = {1, 2, 3};
  WholeModel model(parameters, nullptr);
  std::vector<float> room;
  CHECK(model.on_host(room)->data() == parameters.data());  // nothing is copied
  CHECK(model.accelerator_status().ok());
  std::vector<float> mean(3);
  CHECK_NOTHROW(model.require_length(mean));

  const std::vector<float> carried = {4, 5};
  model.carry(carried);
  CHECK(model.carried() == 2);
  const auto all = model.on_host(room);
  REQUIRE(all.ok());
  CHECK(std::vector<float>(all->begin(), all->end()) == std::vector<float>{1, 2, 3, 4, 5});
  std::vector<float> other;
  CHECK(model.parameters_on_host(other)->size() == 3);
  CHECK_THROWS_WITH_AS(model.require_length(mean), doctest::Contains("2 values go along"), Error);
  CHECK_NOTHROW(model.require_length({}));
  mean.resize(5);
  CHECK_NOTHROW(model.require_length(mean));
}

TEST_CASE("work before: traffic and times of a saved state count on") {
  const std::vector<Rank> peers = {1, 4};
  ByteBuffer saved;
  WorkBefore::save({{0, 1, 100, 2}, {0, 4, 50, 1}}, {.algorithm_s = 1.5, .wait_s = 0.25}, saved);
  WorkBefore before(0, peers);
  ByteReader in(saved.bytes());
  REQUIRE(before.load(in).ok());
  CHECK(in.finished());
  const auto total = before.and_since({{0, 1, 7, 1}, {0, 4, 0, 0}});
  REQUIRE(total.size() == 2);
  CHECK(total[0].to == 1);
  CHECK(total[0].bytes == 107);
  CHECK(total[0].frames == 3);
  CHECK(total[1].bytes == 50);
  CHECK(before.and_since(std::vector<LinkTraffic>{}).size() == 2);  // before the nodes have met
  CHECK(before.and_since(DriverTimes{.algorithm_s = 0.5, .wait_s = 1}).algorithm_s == 2);

  for (const std::vector<Rank>& others : {std::vector<Rank>{1}, std::vector<Rank>{1, 3}}) {
    WorkBefore other(0, others);
    ByteReader again(saved.bytes());
    CHECK(other.load(again).fault() == Fault::malformed);
  }
}

TEST_CASE("compression watch: an exchange's own number is measured, not too often") {
  CompressionWatch none(1);
  none.measure(3);  // no meter is wanted
  CHECK_FALSE(none.last().has_value());

  CompressionWatch watch(4);
  const auto meter = watch.start();
  watch.measure(8);  // of local steps: the exchange number 2
  CHECK_FALSE(meter->wants(1));
  CHECK(meter->wants(2));
  meter->add({.signal = 1, .error = 0.5, .bound = 1});
  REQUIRE(watch.last().has_value());
  CHECK(watch.last()->error == 0.5);

  CompressionWatch often(1);
  const auto asked = often.start();
  often.measure_before(10);
  CHECK(asked->wants(9));
  often.measure_before(9 + kMeasureEvery);  // too soon
  CHECK_FALSE(asked->wants(9 + kMeasureEvery));
  often.measure_before(10 + kMeasureEvery);
  CHECK(asked->wants(9 + kMeasureEvery));
}

}  // namespace sotto::test::parts_test
