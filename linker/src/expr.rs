//! Scalar expressions as trees.

use std::ops::{Add, Div, Mul, Rem, Sub};

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Relation {
    Differs,
    Equals,
    Above,
    NotAbove,
}

/// A scalar expression of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the others are named by their operators")]
pub enum Expr {
    Number(i32),
    /// A variable of the kernel.
    Name(String),
    /// A field of the request.
    Field(String),
    /// A constant of the geometry, by its name in the text.
    Constant(&'static str),
    Negative(Box<Self>),
    Sum(Box<Self>, Box<Self>),
    Difference(Box<Self>, Box<Self>),
    Product(Box<Self>, Box<Self>),
    /// `a / b`, rounded to zero.
    Quotient(Box<Self>, Box<Self>),
    /// The remainder of that division.
    Remainder(Box<Self>, Box<Self>),
    /// Two to the power of a number.
    PowerOfTwo(Box<Self>),
    /// One of the two numbers that a variable of 64 bits consists of.
    Lane {
        /// The variable.
        of: String,
        /// The index of the number, from the lowest bits on.
        n: u32,
    },
    Max(Box<Self>, Box<Self>),
    Min(Box<Self>, Box<Self>),
    /// The condition that two numbers have a relation.
    Test(Relation, Box<Self>, Box<Self>),
    Not(Box<Self>),
    Either(Box<Self>, Box<Self>),
}

impl Expr {
    /// Returns a variable of the kernel.
    pub fn name(name: impl Into<String>) -> Self {
        Self::Name(name.into())
    }

    /// Returns a field of the request.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// Returns the larger number.
    pub fn max(a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::Max(Box::new(a.into()), Box::new(b.into()))
    }

    /// Returns the smaller number.
    pub fn min(a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::Min(Box::new(a.into()), Box::new(b.into()))
    }

    /// Returns the condition that two numbers have a relation.
    pub fn test(relation: Relation, a: impl Into<Self>, b: impl Into<Self>) -> Self {
        Self::Test(relation, Box::new(a.into()), Box::new(b.into()))
    }

    /// Returns the value of a number or condition in which each variable has the value that `of` returns
    /// for it; `None` if the value is unknown.
    pub fn value(&self, of: &dyn Fn(&str) -> Option<i32>) -> Option<i32> {
        match self {
            Self::Number(n) => Some(*n),
            Self::Name(name) => of(name),
            Self::Not(a) => Some(i32::from(a.value(of)? == 0)),
            Self::Test(relation, a, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                Some(i32::from(match relation {
                    Relation::Differs => a != b,
                    Relation::Equals => a == b,
                    Relation::Above => a > b,
                    Relation::NotAbove => a <= b,
                }))
            }
            _ => None,
        }
    }

    /// Returns two to the power of a number.
    pub fn power_of_two(a: Self) -> Self {
        Self::PowerOfTwo(Box::new(a))
    }

    /// Returns the negated number.
    #[must_use]
    pub fn negative(self) -> Self {
        Self::Negative(Box::new(self))
    }

    /// Returns the opposite of a condition; for a test, the test of the opposite relation.
    #[must_use]
    pub fn opposite(self) -> Self {
        let relation = match self {
            Self::Test(Relation::Differs, ..) => Relation::Equals,
            Self::Test(Relation::Equals, ..) => Relation::Differs,
            Self::Test(Relation::Above, ..) => Relation::NotAbove,
            Self::Test(Relation::NotAbove, ..) => Relation::Above,
            other => return Self::Not(Box::new(other)),
        };
        if let Self::Test(_, a, b) = self { Self::Test(relation, a, b) } else { self }
    }

    /// Returns the disjunction of two conditions.
    pub fn either(a: Self, b: Self) -> Self {
        Self::Either(Box::new(a), Box::new(b))
    }

    /// Returns whether the expression is a condition and not a number.
    pub fn is_condition(&self) -> bool {
        matches!(self, Self::Test(..) | Self::Not(_) | Self::Either(..))
    }

    /// Returns whether the expression is a literal or a name.
    pub fn is_atom(&self) -> bool {
        matches!(self, Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_))
    }

    /// Visits the expression and all expressions in it.
    pub fn each<'e>(&'e self, f: &mut dyn FnMut(&'e Self)) {
        f(self);
        match self {
            Self::Number(_) | Self::Name(_) | Self::Field(_) | Self::Constant(_) => {}
            Self::Lane { .. } => {}
            Self::Negative(a) | Self::Not(a) | Self::PowerOfTwo(a) => a.each(f),
            Self::Sum(a, b)
            | Self::Difference(a, b)
            | Self::Product(a, b)
            | Self::Quotient(a, b)
            | Self::Remainder(a, b)
            | Self::Max(a, b)
            | Self::Min(a, b)
            | Self::Either(a, b)
            | Self::Test(_, a, b) => {
                a.each(f);
                b.each(f);
            }
        }
    }
}

impl From<i32> for Expr {
    fn from(n: i32) -> Self {
        Self::Number(n)
    }
}

/// Implements operators, which return the first operand alone if the second one is a number that changes nothing.
macro_rules! operators {
    ($($operator:ident $f:ident $variant:ident $($identity:literal)?;)*) => {$(
        impl<T: Into<Self>> $operator<T> for Expr {
            type Output = Self;
            fn $f(self, b: T) -> Self {
                match b.into() {
                    $(Self::Number($identity) => self,)?
                    b => Self::$variant(Box::new(self), Box::new(b)),
                }
            }
        }
    )*};
}

operators! {
    Add add Sum 0;
    Sub sub Difference;
    Mul mul Product 1;
    Div div Quotient;
    Rem rem Remainder;
}
