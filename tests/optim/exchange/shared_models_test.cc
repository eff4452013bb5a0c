// Vectors that the nodes of a simulation share (optim/exchange/shared_models.h, vector_pool.h), and
// that runs whose nodes share them have the bits of runs whose nodes do not.
#include <sotto/optim/exchange/shared_models.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <sotto/optim/exchange/vector_pool.h>

namespace sotto::test::shared_models_test {

TEST_CASE("holders see the owner's own vector until it changes, and what it was afterwards") {
  SharedModels models;
  std::vector<float> x = {1, 2, 3};
  SharedModels::Held own = models.publish(7, 100, x);
  const SharedModels::Held held = models.find(7, 100);
  REQUIRE(held != nullptr);
  CHECK(held->values.data() == x.data());
  CHECK(models.find(7, 102) == nullptr);
  CHECK(models.find(8, 100) == nullptr);

  SharedModels::leave(own, host_ops());
  x = {4, 5, 6};
  CHECK(std::vector<float>(held->values.begin(), held->values.end()) ==
        std::vector<float>{1, 2, 3});
  CHECK(models.find(7, 100) == held);

  own = models.publish(7, 102, x);
  CHECK(models.find(7, 102)->values.data() == x.data());
  CHECK(held->values[0] == 1);
}

TEST_CASE("a vector that nobody holds is not kept") {
  SharedModels models;
  std::vector<float> x = {1};
  SharedModels::Held own = models.publish(0, 2, x);
  SharedModels::leave(own, host_ops());
  CHECK(own == nullptr);
  CHECK(models.find(0, 2) == nullptr);
}

TEST_CASE("what is written to is a copy, unless nobody else holds it") {
  SharedModels models;
  const std::vector<float> x = {1, 2};
  const SharedModels::Held start = models.start(x, host_ops());
  CHECK(models.start(x, host_ops()) == start);
  CHECK(models.start(std::vector<float>{1, 3}, host_ops()) != start);

  SharedModels::Held mine = start;
  SharedModels::own(mine, 2, host_ops())[0] = 9;
  CHECK(mine != start);
  CHECK(start->values[0] == 1);
  models.add(3, 50, mine);
  CHECK(models.find(3, 50) == mine);

  const float* const before = mine->values.data();
  SharedModels::own(mine, 2, host_ops())[1] = 8;
  CHECK(mine->values.data() == before);
  models.add(3, 60, mine);
  CHECK(models.find(3, 50) == nullptr);  // it is of another version now
  CHECK(models.find(3, 60) == mine);
}

TEST_CASE("a pool lends a vector again, and one's own stays") {
  VectorPool pool;
  LentVector lent(4, host_ops(), &pool);
  float* const room = lent.use().data();
  lent.use()[2] = 5;
  CHECK(lent.use()[2] == 5);
  lent.give_back();
  LentVector other(4, host_ops(), &pool);
  CHECK(other.use().data() == room);
  LentVector longer(5, host_ops(), &pool);
  CHECK(longer.use().size() == 5);

  LentVector own(4, host_ops(), nullptr);
  own.use()[1] = 3;
  own.give_back();
  CHECK(own.use()[1] == 3);
  CHECK(LentVector(0, host_ops(), &pool).use().empty());
}

}  // namespace sotto::test::shared_models_test
