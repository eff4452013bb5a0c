// Files of ratings, how they are cut, and the area under the curve, by hand.
#include <sotto/trainers/data/ratings.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/base/error.h>
#include <sotto/trainers/tasks/graph_task.h>

#include "support/rated_people.h"
#include "support/scratch.h"

namespace sotto::test::ratings_test {

namespace {

std::string refusal_of(const std::string& text) {
  Scratch scratch;
  const auto file = scratch.write("ratings.csv", text);
  try {
    (void)read_ratings(file);
  } catch (const Error& error) {
    return error.what();
  }
  return "taken";
}

}  // namespace

TEST_CASE("people of ratings are numbered in the order of their names") {
  Scratch scratch;
  const auto file =
      scratch.write("ratings.csv", "from,to,rating\n7,3,10\r\n\n3 , 100,-2.5,x,y\n100,100,1\n");
  const Ratings ratings = read_ratings(file);
  CHECK(ratings.people == 3);
  CHECK(ratings.largest == 10);
  REQUIRE(ratings.all.size() == 2);  // nobody rates oneself
  CHECK(ratings.all[0].from == 1);
  CHECK(ratings.all[0].to == 0);
  CHECK(ratings.all[1].from == 0);
  CHECK(ratings.all[1].to == 2);
  CHECK(ratings.all[1].value == -2.5F);
}

TEST_CASE("what is no file of ratings is refused with the line") {
  const auto says = [](const std::string& text, const std::string& why) {
    const std::string said = refusal_of(text);
    CHECK_MESSAGE(said.find(why) != std::string::npos, said);
  };
  says("1,2,3\n", "taken");
  says("", "no ratings of others");
  says("a,b,c\n", "no ratings of others");
  says("1,1,3\n", "no ratings of others");
  says("1,2,3\n1,2\n", "line 2");
  says("1,2,3\na,2,3\n", "people are whole numbers");
  says("1,2,3\n2,1.5,3\n", "the target is '1.5'");
  says("1,2,3\n2,99999999999999999999,3\n", "people are whole numbers");
  says("1,2,3\n2,1,\n", "line 2");
  says("1,2,3\n2,1,nan\n", "line 2");
  says("1,2,3\n2,1,0\n", "neither trust nor distrust");
  says("s,t,r\n1,2,3\n2,1,3\n1,2,-4\n", "line 4: 1 rates 2 a second time, after line 2");
}

TEST_CASE("ratings that are held back are no edges and no features") {
  const RatedPeople people;
  const Ratings ratings = read_ratings(people.path());
  for (const GraphCut way : {GraphCut::walk, GraphCut::random}) {
    const RatingsSplit split =
        split_ratings(ratings, {.members = 4, .test = 30, .seed = 3, .cut = way});
    CHECK(split.train.links.size() + split.test.size() == ratings.all.size());
    const double share =
        static_cast<double>(split.test.size()) / static_cast<double>(ratings.all.size());
    CHECK(share == doctest::Approx(0.3).epsilon(0.25));
    std::set<GraphEdge> edges(split.train.edges.begin(), split.train.edges.end());
    CHECK(edges.size() == split.train.edges.size());
    std::vector<int> of_member(4);
    for (const int owner : split.train.owner) {
      ++of_member.at(static_cast<std::size_t>(owner));
    }
    for (const int count : of_member) {
      CHECK(std::abs(count - 30 / 4) <= 1);
    }
    double positive = 0;
    double negative = 0;
    for (const GraphLink& link : split.train.links) {
      (link.positive ? positive : negative) += static_cast<double>(link.weight);
      CHECK(edges.contains({std::min(link.from, link.to), std::max(link.from, link.to)}));
    }
    CHECK(positive == doctest::Approx(1));
    CHECK(negative == doctest::Approx(1));
    const RatingsSplit apart =
        split_ratings(ratings, {.members = 4, .test = 30, .seed = 3, .cut = way, .apart = true});
    CHECK(apart.train.edges.size() < split.train.edges.size());
    for (const auto& [a, b] : apart.train.edges) {
      CHECK(apart.train.owner[a] == apart.train.owner[b]);
    }
    CHECK(apart.test.size() == split.test.size());
    CHECK(apart.train.features == split.train.features);
  }
}

TEST_CASE("the area under the curve counts pairs in order and ties by half") {
  const std::vector<GraphLink> links = {
      {.positive = true}, {.positive = false}, {.positive = true}, {.positive = false}};
  const auto area = [&](std::vector<double> scores) { return area_under_curve(links, scores); };
  CHECK(area({4, 1, 3, 2}) == 1);
  CHECK(area({1, 4, 2, 3}) == 0);
  CHECK(area({4, 1, 2, 3}) == 0.75);
  CHECK(area({1, 1, 1, 1}) == 0.5);
  CHECK(area({2, 2, 3, 1}) == 0.875);
  CHECK(std::isnan(area({2, std::numeric_limits<double>::quiet_NaN(), 3, 1})));
  CHECK(area_under_curve(std::span(links).first(1), std::vector<double>{1}) == 0.5);
}

TEST_CASE("a graph's task takes its parameters and refuses others") {
  const RatedPeople people;
  const auto problem =
      load_graph(people.task("hidden=5,embedding=3,halo=keyed:2,gradient-halo=none,cache=4,"
                             "share=25,cut=random,test=10,seed=9"));
  CHECK(problem->network.hidden == 5);
  CHECK(problem->network.embedding == 3);
  CHECK(problem->network.keyed);
  CHECK(problem->network.compressor == "quant:2");
  CHECK(problem->network.gradient_compressor == "none");
  CHECK(problem->network.cache.most_age == 4);
  CHECK(problem->network.cache.share == 0.25);
  CHECK(problem->cut.cut == GraphCut::random);
  CHECK(problem->cut.test == 10);
  CHECK(problem->cut.seed == 9);
  CHECK(load_graph(people.task("halo=none,apart"))->cut.apart);
  for (const std::string more : {"hidden=0",
                                 "hidden=5000",
                                 "embedding=0",
                                 "halo=keyed:1",
                                 "halo=keyed:9",
                                 "halo=keyed:",
                                 "halo=quant:4",
                                 "halo=sign",
                                 "halo=quantum",
                                 "gradient-halo=keyed:4",
                                 "gradient-halo=quant:4",
                                 "cache=2000000",
                                 "share=50",
                                 "cache=3,share=0",
                                 "cache=3,share=101",
                                 "cut=metis",
                                 "test=0",
                                 "test=100",
                                 "apart=1",
                                 "depth=3",
                                 "hidden=4,hidden=5",
                                 "halo=none,halo=quant:8"}) {
    CAPTURE(more);
    CHECK_THROWS_AS(load_graph(people.task(more)), Error);
  }
  CHECK_THROWS_AS(load_graph("graph:/nowhere/ratings.csv"), Error);
  CHECK_THROWS_AS(split_graph(*problem, 31), Error);
  CHECK_NOTHROW(split_graph(*problem, 30));
}

TEST_CASE("a model that is no number has no area under its curve") {
  const RatedPeople people;
  const auto problem = load_graph(people.task("hidden=4,embedding=2"));
  GraphTask task(problem, split_graph(*problem, 2));
  std::vector<float> x(task.dimension());
  task.initialize(x, 1);
  std::vector<float> again(x.size());
  task.initialize(again, 1);
  CHECK(x == again);
  const Evaluation found = task.evaluate(x);
  CHECK(std::isfinite(found.loss));
  CHECK(task.evaluate(x).loss == found.loss);
  x[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(task.evaluate(x).accuracy));
  x = again;
  CHECK(task.evaluate(x).accuracy == found.accuracy);
  // Without weights all scores are 0: log 2, and no order.
  std::vector<float> nothing(x.size());
  CHECK(task.evaluate(nothing).loss == doctest::Approx(std::log(2.0)));
  CHECK(task.evaluate(nothing).accuracy == 0.5);
}

}  // namespace sotto::test::ratings_test
