// What will be posted next is told from what was, and no room is promised twice.
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/receive_forecast.h>

namespace sotto::test::receive_forecast_test {

namespace {

std::optional<Round> ahead_of(ReceiveForecast& forecast, Round round, std::uint32_t bucket = 0) {
  forecast.post({.round = round, .bucket = bucket});
  const auto next = forecast.next();
  CHECK((!next || next->bucket == bucket));
  return next ? std::optional(next->round) : std::nullopt;
}

}  // namespace

TEST_CASE("three rounds equally far apart foretell the fourth") {
  for (const Round stride : {1U, 3U, 16U}) {
    CAPTURE(stride);
    ReceiveForecast forecast(2);
    CHECK_FALSE(ahead_of(forecast, 5));
    CHECK_FALSE(ahead_of(forecast, 5 + stride));
    CHECK(ahead_of(forecast, 5 + 2 * stride) == 5 + 3 * stride);
    CHECK(ahead_of(forecast, 5 + 3 * stride) == 5 + 4 * stride);
  }
}

TEST_CASE("nothing is foretold from rounds that are unequally far apart, too far, or go back") {
  ReceiveForecast forecast(8);
  for (const Round round : {0U, 1U, 3U, 4U, 6U, 7U, 40U, 73U, 106U, 2U, 1U, 0U}) {
    CHECK_FALSE(ahead_of(forecast, round));
  }
}

TEST_CASE("phases and buckets are foretold apart") {
  ReceiveForecast forecast(8);
  for (Round round = 0; round < 3; ++round) {
    for (std::uint32_t bucket = 0; bucket < 3; ++bucket) {
      const auto next = ahead_of(forecast, round, bucket);
      CHECK(next.has_value() == (round == 2));
    }
  }
  forecast.post({.round = 3, .phase = 1, .bucket = 0});
  CHECK_FALSE(forecast.next());
  forecast.post({.round = 3, .phase = 0, .bucket = 0});
  CHECK(forecast.next() == ExchangeTag{.round = 4, .phase = 0, .bucket = 0});
}

TEST_CASE("a forecast that failed is not repeated, and keeps its room") {
  ReceiveForecast forecast(2);
  for (Round round = 0; round < 3; ++round) {
    (void)ahead_of(forecast, round);
  }
  for (Round round = 10; round < 20; ++round) {
    CHECK_FALSE(ahead_of(forecast, round));
  }
  // One of two rooms is left for others.
  for (std::uint32_t bucket = 1; bucket <= 2; ++bucket) {
    for (Round round = 0; round < 2; ++round) {
      (void)ahead_of(forecast, round, bucket);
    }
    CHECK(ahead_of(forecast, 2, bucket).has_value() == (bucket == 1));
  }
}

TEST_CASE("a room is free again when its frame has left it") {
  ReceiveForecast forecast(1);
  (void)ahead_of(forecast, 0);
  (void)ahead_of(forecast, 1);
  CHECK(ahead_of(forecast, 2) == 3);
  CHECK_FALSE(ahead_of(forecast, 3));  // that of round 3 is still on its way
  forecast.vacate();
  CHECK(forecast.next()->round == 4);
  CHECK_FALSE(ahead_of(forecast, 4));
  forecast.vacate();
  CHECK(forecast.next()->round == 5);
}

TEST_CASE("rooms that become free are for the receives that will be posted next") {
  // Five phases a round and two rooms: at each moment the next two are told, across rounds.
  constexpr std::uint16_t kPhases = 5;
  ReceiveForecast forecast(2);
  std::vector<ExchangeTag> told;
  const auto gather = [&] {
    while (const auto next = forecast.next()) {
      told.push_back(*next);
    }
  };
  for (Round round = 0; round < 8; ++round) {
    for (std::uint16_t phase = 0; phase < kPhases; ++phase) {
      const ExchangeTag tag{.round = round, .phase = phase};
      const bool early = std::erase(told, tag) > 0;
      CHECK(early == (round > 2));
      forecast.post(tag);
      if (early) {
        forecast.vacate();
      }
      gather();
      CHECK(told.size() <= 2);
    }
  }
}

TEST_CASE("rooms hold 8 MiB of a peer, no frame that is longer, and 64 frames in all") {
  CHECK(ReceiveForecast::rooms_for(1000, 2) == 16);
  CHECK(ReceiveForecast::rooms_for(std::size_t{3} << 20U, 2) == 2);
  CHECK(ReceiveForecast::rooms_for((std::size_t{8} << 20U) + 1, 2) == 0);
  CHECK(ReceiveForecast::rooms_for(0, 0) == 16);
  CHECK(ReceiveForecast::rooms_for(1000, 8) == 8);
  CHECK(ReceiveForecast::rooms_for(1000, 1000) == 1);
}

}  // namespace sotto::test::receive_forecast_test
